"""Everyday requests among thousands of tools."""

import pytest

from session_runtime.search import index_tools

SERVICES = (
    "Gmail Outlook Slack Teams Discord Telegram Twitter LinkedIn Facebook Instagram GitHub GitLab "
    "Bitbucket Jira Asana Trello Linear Notion Confluence Dropbox OneDrive GoogleDrive GoogleCalendar "
    "GoogleDocs GoogleSheets Zoom Stripe PayPal Shopify Salesforce HubSpot Zendesk Intercom Airtable "
    "Spotify YouTube Reddit Figma Twilio Mailchimp Monday"
).split()
ACTIONS = (
    "SendEmail SendMessage ListMessages SearchMessages DeleteMessage CreateChannel ListChannels "
    "InviteUser ListUsers GetUserProfile CreateIssue UpdateIssue CloseIssue ListIssues CreatePullRequest "
    "MergePullRequest ListRepositories CreateTask CompleteTask AssignTask ListTasks CreatePage "
    "SearchPages UploadFile DownloadFile ShareFile ListFiles CreateEvent CancelEvent ListEvents "
    "CreateDocument AppendText AddRow ReadRange StartMeeting ListRecordings CreateInvoice RefundPayment "
    "ListPayments CreateOrder CancelOrder ListOrders CreateContact UpdateContact SearchContacts "
    "CreateTicket ReplyToTicket CloseTicket AddRecord ListRecords PlayTrack SearchTracks CreatePlaylist "
    "UploadVideo SearchVideos ListComments AddComment DeleteComment CreatePost SchedulePost ListPosts "
    "CreateForm ListForms CreateWebhook ListWebhooks RotateKey ExportReport ImportData CreateLabel "
    "ApplyLabel RemoveLabel CreateTeam ListTeams ArchiveProject CreateProject ListProjects GetAnalytics "
    "CreateCampaign SendCampaign ListCampaigns MakeCall SendSms ListCalls CreateBoard ListBoards "
    "CreateSprint CloseSprint ListSprints CreateWorkspace ListWorkspaces GetUsage ListInvoices "
    "CreateCoupon ListCoupons CreateProduct UpdateProduct ListProducts CreateReminder"
).split()
REQUESTS = {
    "send an email with gmail": "Gmail_SendEmail",
    "post a message to slack": "Slack_SendMessage",
    "open an issue on github": "GitHub_CreateIssue",
    "merge a github pull request": "GitHub_MergePullRequest",
    "list my jira issues": "Jira_ListIssues",
    "create a task in asana": "Asana_CreateTask",
    "upload a file to dropbox": "Dropbox_UploadFile",
    "schedule an event in google calendar": "GoogleCalendar_CreateEvent",
    "add a row to google sheets": "GoogleSheets_AddRow",
    "start a zoom meeting": "Zoom_StartMeeting",
    "refund a stripe payment": "Stripe_RefundPayment",
    "list shopify orders": "Shopify_ListOrders",
    "create a contact in hubspot": "HubSpot_CreateContact",
    "reply to a zendesk ticket": "Zendesk_ReplyToTicket",
    "play a track on spotify": "Spotify_PlayTrack",
    "search youtube videos": "YouTube_SearchVideos",
    "create a post on linkedin": "LinkedIn_CreatePost",
    "send a telegram message": "Telegram_SendMessage",
    "search pages in notion": "Notion_SearchPages",
    "delete a discord message": "Discord_DeleteMessage",
    "send sms with twilio": "Twilio_SendSms",
    "list airtable records": "Airtable_ListRecords",
    "invite a user to teams": "Teams_InviteUser",
    "send a mailchimp campaign": "Mailchimp_SendCampaign",
    "add a comment in figma": "Figma_AddComment",
}


@pytest.mark.requirement("TS-8")
def test_everyday_requests_find_their_tool_among_four_thousand() -> None:
    index = index_tools(
        {"name": f"{service}_{action}", "description": f"{action} for the {service} account"}
        for service in SERVICES
        for action in ACTIONS
    )
    assert len(index.names) >= 4_000
    missed = {
        request: found
        for request, name in REQUESTS.items()
        if name not in (found := [ranked for ranked, _ in index.rank(request, 5)])
    }
    assert missed == {}
