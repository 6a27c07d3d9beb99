"""Synonyms of spoken Chinese, and of Taiwan and Hong Kong, in groups like those of ``synonyms``.

All in simplified characters: other forms are simplified before they are looked up. No word is a single
character (most words hold one), and one English word says what a group is about.
"""

COLLOQUIAL: tuple[str, ...] = tuple(
    """
    软体 软件 应用 software
    硬体 硬件 hardware
    网路 网络 联网 上网 network
    网际网路 互联网 internet
    资讯 信息 information
    档案 文件 file
    资料夹 文件夹 目录 folder
    资料 数据 data
    资料库 数据库 database
    使用者 用户 user
    程式 程序 program
    程式码 代码 源码 code
    伺服器 服务器 主机 server
    萤幕 屏幕 显示器 screen
    滑鼠 鼠标 mouse
    印表机 打印机 printer
    列印 打印 print
    影片 视频 录像 video
    简讯 短信 sms
    讯息 消息 message
    讯号 信号 signal
    搜寻 搜索 查找 寻找 search
    设定 设置 setting
    连结 链接 网址 link
    连线 连接 connect
    硬碟 硬盘 磁盘 disk
    记忆体 内存 memory
    介面 界面 interface
    范本 模板 template
    品质 质量 quality
    专案 项目 project
    物件 对象 object
    变数 变量 variable
    函式 函数 function
    阵列 数组 array
    字串 字符串 字符 string
    解析度 分辨率 resolution
    计程车 出租车 打车 taxi
    捷运 地铁 subway
    公车 公交车 巴士 bus
    脚踏车 自行车 单车 骑车 bike
    贴文 帖子 发帖 post
    贴图 表情包 表情 sticker
    相片 照片 图片 拍照 photo
    行动电话 手机 mobile
    部落格 博客 blog
    查询 询问 咨询 query
    删除 删掉 去掉 清空 移除 delete
    修改 改动 改成 更改 edit
    添加 加上 加入 增加 add
    关闭 关掉 关上 close
    打开 开启 open
    播放 放歌 听歌 收听 play
    购买 下单 购物 buy
    出售 转让 sell
    付款 付钱 支付 交钱 pay
    价格 价钱 单价 售价 多少钱 price
    便宜 优惠 打折 折扣 cheap
    时间 几点 时刻 钟点 time
    日期 几号 星期几 礼拜 date
    农历 阴历 黄历 lunar
    公历 阳历 日历 calendar
    地点 位置 哪里 地方 place
    路线 怎么走 导航 走法 route
    距离 多远 路程 distance
    时长 多久 耗时 duration
    天气 下雨 下雪 降温 晴天 气象 weather
    穿衣 穿什么 衣着 clothing
    说话 发言 讲话 聊天 speak
    发言 消息 留言 message
    聊天记录 历史消息 对话记录 history
    群聊 群组 chat
    群主 群管 管理员 owner
    群友 网友 群员 成员 member
    好友 朋友 联系人 通讯录 friend
    私聊 私信 悄悄话 private
    公告 通告 告示 announcement
    撤回 收回 recall
    踢人 踢出 移出 赶走 kick
    拉人 邀请 请人 invite
    禁言 闭嘴 mute
    活跃 活跃度 积极 active
    潜水 沉默 不活跃 inactive
    点赞 喜欢 like
    评论 留言 热评 评价 回复 comment
    转发 分享 转给 share
    关注 粉丝 follow
    签到 打卡 checkin
    入群 进群 加群 join
    退群 离群 leave
    昵称 名字 称呼 名片 nickname
    头衔 称号 title
    识别 看图 识图 辨认 recognize
    文字识别 ocr 扫描
    二维码 扫码 qr
    翻译 译成 英译 translate
    总结 概括 归纳 摘要 要点 summary
    绘画 画画 绘制 作画 draw
    绘图 作图 画图 图表 chart
    撰写 编写 起草 write
    计算 运算 算数 算术 calculate
    数学 算术 代数 几何 math
    压缩包 压缩 解压 archive
    表格 电子表格 excel
    幻灯片 演示文稿 演示 ppt
    文档 文稿 document
    网页 网站 页面 web
    网速 带宽 延迟 测速 speed
    热搜 热榜 热门 热点 trending
    榜单 排行榜 排行 排名 ranking
    新闻 头条 时事 news
    电视剧 追剧 剧集 series
    小说 书籍 novel
    歌单 播放列表 playlist
    歌曲 音乐 曲子 song
    歌手 艺人 明星 singer
    星座 运势 占卜 算命 horoscope
    抽签 求签 占卜 运气 divination
    笑话 段子 搞笑 joke
    菜谱 做饭 做菜 食谱 recipe
    外卖 点餐 订餐 takeout
    酒店 住宿 宾馆 旅馆 民宿 hotel
    机票 航班 飞机票 飞机 flight
    火车票 高铁票 车票 火车 高铁 train
    快递 物流 包裹 寄件 delivery
    股价 股票 行情 炒股 stock
    汇率 换汇 外汇 换钱 exchange
    黄金 金子 金价 gold
    油价 汽油 加油 oil
    工资 薪水 薪资 salary
    请假 休假 放假 vacation
    报销 费用 花费 expense
    会议 开会 meeting
    日程 行程 安排 schedule
    待办 清单 待办事项 todo
    备忘录 便签 笔记 记下 memo
    提醒 叫醒 闹钟 remind
    定时 定时任务 定点 按时 schedule
    每天 每日 天天 daily
    每周 周报 weekly
    医生 看病 挂号 就诊 doctor
    药品 吃药 用药 medicine
    健身 锻炼 运动 fitness
    身份证 证件 identity
    记住 记忆 记得 memory
    忘记 忘掉 遗忘 forget
    知识 知识库 百科 knowledge
    帮助 用法 使用方法 help
    版本 更新日志 版本号 version
    域名 网域 注册商 domain
    注册 开户 register
    代码 编程 写代码 程序 code
    报错 出错 错误 故障 error
    修复 修好 维修 fix
    仓库 代码库 repo
    文章 帖子 博文 article
    论文 文献 学术 paper
    声音 语音 朗读 配音 voice
    视频 短视频 录像 video
    上传 传上去 upload
    发送 发给 发到 send
    附件 附上 attachment
    邮件 邮箱 电子邮件 发信 email
    电话 打电话 通话 call
    验证码 校验码 captcha
    余额 剩余 还剩 balance
    话费 流量 套餐
    彩票 中奖 抽奖 lottery
    生日 诞辰 birthday
    年龄 岁数 age
    统计 数目 数量 人数 count
    趋势 走势 变化 trend
    比较 对比 区别 差别 compare
    推荐 介绍 建议 recommend
    限制 上限 额度 limit
    权限 授权 permission
    查看 浏览 翻看 阅读 view
    附近 周边 周围 nearby
    随机 随便 任意 random
    网盘 云盘 云存储 cloud
    直播 开播 主播 live
    游戏 打游戏 game
    皮肤 外观 skin
    等级 级别 升级 level
    最近 近期 近来 recent
    """.strip().splitlines()
)
