"""Words that mean the same in names of tools and in requests; how much they count is a weight.

One group per line, English and Chinese together, so that a Chinese request finds a tool that is
described in English. Chinese words have one or two characters, as the index holds no longer terms.
Here are deeds, software and data; what people talk about otherwise is in ``everyday``.
"""

from session_runtime.search.colloquial import COLLOQUIAL
from session_runtime.search.everyday import EVERYDAY

DEEDS_AND_DATA: tuple[str, ...] = tuple(
    """
    delete remove erase 删除 移除 清除 删掉
    create add insert new 创建 新建 添加 新增 建立
    generate produce create make build 生成 制作
    update modify edit change alter revise 更新 修改 编辑 更改 变更
    get fetch retrieve obtain read 获取 读取 取得
    list enumerate 列出 列表
    search find lookup query seek discover 搜索 查找 查询 检索
    show display view present 显示 展示 查看
    check verify validate confirm 检查 验证 校验 核对 确认
    send deliver post dispatch 发送 寄送
    start begin launch open 开始 启动 打开
    stop end halt terminate close 停止 结束 关闭 终止
    cancel abort revoke 取消 撤销
    run execute invoke perform 运行 执行
    enable activate 启用 激活 开启
    disable deactivate 禁用 停用
    book reserve reservation booking 预订 预定 预约
    buy purchase order acquire 购买 买 采购
    sell sale 出售 卖 销售
    pay payment 支付 付款 缴费
    transfer remit 转账 汇款 转移
    download 下载
    save store persist 保存 存储
    copy duplicate clone 复制 拷贝
    move relocate 移动
    rename 重命名 改名
    compare contrast diff 比较 对比
    calculate compute 计算 算
    convert transform translate 转换 换算
    summarize summary digest 总结 摘要 概括
    analyze analyse analysis 分析
    recommend suggest recommendation 推荐 建议
    join enter 加入
    leave quit exit 退出 离开
    login signin authenticate 登录 登陆 登入
    logout signout 登出 注销 退出
    log_in login sign_in signin 登录 登陆 登入
    log_out logout log_off logoff sign_out signout 登出 注销
    turn_on switch_on power_on 打开 开启
    turn_off switch_off power_off shut_down 关闭 关掉
    register signup enroll 注册 报名
    subscribe subscription 订阅
    share 分享 共享
    upgrade 升级
    install setup 安装
    import load 导入
    export dump 导出
    merge combine join 合并
    split divide 拆分 分割
    sort order rank 排序 排名
    filter 筛选 过滤
    count number total 数量 统计 计数
    monitor track watch 监控 跟踪 追踪
    schedule plan agenda calendar 日程 计划 安排
    remind reminder alarm 提醒 闹钟
    notify notification alert 通知 提醒 告警
    message msg chat text 消息 信息 聊天 短信
    mail email 邮件 邮箱 电子邮件
    call phone telephone 电话 呼叫
    picture image photo img pic 图片 图像 照片 相片
    avatar portrait 头像
    video movie film clip 视频 电影 影片
    music song track audio 音乐 歌曲 歌
    voice speech audio 语音
    file document doc 文件 文档
    folder directory 文件夹 目录
    user member account people 用户 成员
    account 账户 账号 帐户
    person people contact 人员 联系人
    group team 群组 群 团队
    admin administrator 管理员
    profile info information detail 资料 信息 详情 详细
    role permission access privilege 权限 角色
    password passcode secret credential 密码
    key token 密钥 令牌
    task todo 任务 待办
    issue bug ticket 问题
    code program script 代码 程序 脚本
    repo repository 仓库
    database db 数据库
    table sheet spreadsheet 表格
    server host instance machine 服务器 主机
    website site web webpage page url 网站 网页
    link url 链接
    browser 浏览器
    comment reply review feedback 评论 回复 评价
    note memo 笔记 备忘
    report 报告 报表
    setting config configuration preference option 设置 配置
    status state condition 状态
    error fail failure 错误 失败
    version release 版本
    size length 大小
    color colour 颜色
    name title 名称 标题
    type category kind 类型 类别
    id identifier 编号
    language lang 语言
    append attach add 追加 附加
    write compose draft 写入 写 编写 撰写 填写
    reset restore recover recovery revert 恢复 还原 重置
    backup 备份
    submit 提交
    apply application request 申请
    approve accept agree confirm 批准 同意 接受 通过
    reject decline refuse deny 拒绝 驳回
    refund return 退款 退货 退还
    repair fix maintain maintenance service 维修 修理 修复 保养 报修
    arrange organize organise schedule 安排 排期
    reschedule postpone change 改签 改期 延期 变更
    attend participate join 参加 出席 参与
    complain complaint 投诉
    handle process 处理 办理
    progress 进度 进展
    publish release post 发布 发表
    assign allocate distribute 分配 指派
    replace substitute 替换
    switch toggle 切换
    detect recognize recognise identify identification recognition detection 识别 检测 辨认
    extract parse scrape 提取 抽取 解析 抓取
    scan 扫描
    compress zip archive 压缩 归档
    decompress unzip unpack 解压
    encrypt encode 加密 编码
    decrypt decode 解密 解码
    sign signature 签名 签署
    deploy deployment rollout 部署
    test exam quiz 测试 考试 测验
    debug troubleshoot diagnose 调试 诊断 排查
    pause suspend 暂停
    resume continue 继续
    play playback stream 播放
    record recording 录音 录制 录像
    capture screenshot snapshot 截图 截屏 快照
    forward 转发
    limit quota 额度 限额 限制
    freeze lock 冻结 锁定
    unlock 解锁
    block ban 拉黑 屏蔽 封禁
    mute silence 禁言 静音
    kick expel 踢 踢出
    pin 置顶
    vote poll survey questionnaire 投票 问卷 调查
    favorite favourite bookmark 收藏 点赞
    claim 理赔 索赔
    support service 客服 支持
    strategy 策略
    device equipment 设备
    appointment booking reservation 预约 挂号
    article essay 文章
    content text 内容 文本
    tag label 标签
    topic theme subject 主题 话题
    keyword 关键词 关键字
    description describe 描述 说明
    tutorial guide instruction 教程 指南
    advice suggestion tip 建议
    identity 身份
    captcha verification_code 验证码
    draft 草稿
    format 格式
    chart graph plot diagram visualization visualize 图表 绘图
    column field 字段
    row line
    cell 单元格
    data dataset 数据
    port 端口
    cache 缓存
    api interface endpoint 接口
    container docker 容器
    cluster kubernetes k8s 集群
    vm virtual_machine 虚拟机
    branch 分支
    commit 提交
    environment env 环境
    parameter param argument variable 参数 变量
    command cmd 命令 指令
    function method 函数 方法
    library package module dependency 库 依赖
    plugin extension addon 插件 扩展
    auth authentication authorization oauth 认证 授权
    stats statistics metric analytics 指标 统计
    average avg mean 平均
    maximum max highest largest biggest top 最大 最高
    minimum min lowest smallest 最小 最低
    sum add addition plus total 求和 总和
    subtract subtraction minus difference
    multiply multiplication times product 乘 乘积
    divide division quotient
    percent percentage ratio 百分比 比例
    probability chance likelihood odds 概率
    equation formula 方程 公式
    area 面积
    volume 体积 音量
    speed velocity 速度
    unit 单位
    service 服务
    introduction overview 简介 介绍
    conversation dialogue chat 对话 会话
    news feed rss 新闻
    shorten short 缩短
    qr qrcode barcode 二维码 条形码
    domain hostname dns 域名
    pull_request merge_request 合并请求
    artificial_intelligence ai 人工智能
    machine_learning ml 机器学习
    user_interface ui 界面
    text_message sms 短信
    credit_card 信用卡
    bank_card debit_card 银行卡
    id_card identity_card 身份证
    real_estate property 房地产
    air_quality aqi 空气质量
    zip_code postcode postal_code 邮编 邮政编码
    exchange_rate 汇率
    stock_price 股价 股票价格
    knowledge_base 知识库
    social_media 社交媒体
    search_engine 搜索引擎
    operating_system os 操作系统
    command_line cli terminal 命令行 终端
    source_code 源代码 源码
    speech_recognition stt 语音识别
    tts 语音合成
    phone_number 电话号码 手机号
    """.strip().splitlines()
)

GROUPS = (*DEEDS_AND_DATA, *EVERYDAY, *COLLOQUIAL)
