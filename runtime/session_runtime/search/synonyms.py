"""Words that mean the same in names of tools and in requests; how much they count is a weight.

One group per line, English and Chinese together, so that a Chinese request finds a tool that is
described in English. Chinese words have one or two characters, as the index holds no longer terms.
"""

GROUPS: tuple[str, ...] = tuple(
    """
    delete remove erase 删除 移除 清除 删掉
    create add insert new 创建 新建 添加 新增 建立
    generate produce create make build 生成 制作
    update modify edit change alter revise 更新 修改 编辑 更改 变更
    get fetch retrieve obtain read 获取 读取 取得
    list enumerate 列出 列表
    search find lookup query seek discover 搜索 查找 查询 检索 查找
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
    upload 上传
    save store persist 保存 存储
    copy duplicate clone 复制 拷贝
    move relocate 移动
    rename 重命名 改名
    compare contrast diff 比较 对比
    calculate compute 计算 算
    convert transform translate 转换 换算
    translate translation 翻译
    summarize summary digest 总结 摘要 概括
    analyze analyse analysis 分析
    recommend suggest recommendation 推荐 建议
    join enter 加入
    leave quit exit 退出 离开
    login signin authenticate 登录 登陆 登入
    logout signout 登出 注销 退出
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
    mail email 邮件 邮箱
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
    friend buddy 好友 朋友
    admin administrator 管理员
    profile info information detail 资料 信息 详情 详细
    role permission access privilege 权限 角色
    password passcode secret credential 密码
    key token 密钥 令牌
    company business firm organization enterprise corporation 公司 企业
    city town 城市
    country nation 国家
    place location position spot 地点 位置 场所
    address 地址
    map 地图
    route direction path navigation 路线 导航
    weather forecast climate 天气 气象
    temperature 温度 气温
    time clock 时间
    date day 日期
    today current now latest recent 今天 当前 最新 最近
    history historical record log 历史 记录 日志
    news headline article 新闻 资讯
    stock share equity 股票
    price cost rate quote 价格 费用 报价
    exchange currency forex 汇率 货币 外币 兑换
    bank banking 银行
    card 卡
    money cash fund 资金 钱
    balance 余额
    bill invoice 账单 发票
    tax 税
    insurance 保险
    loan credit mortgage 贷款 信贷
    transaction trade deal 交易
    flight airline plane airplane aircraft 航班 机票 飞机
    train railway rail 火车 列车 高铁
    car vehicle auto automobile 汽车 车辆 租车
    taxi cab ride 出租 打车
    hotel accommodation lodging 酒店 宾馆 住宿
    restaurant dining 餐厅 餐馆 饭店
    food meal dish 食物 菜品 美食
    recipe cook cooking 菜谱 食谱
    ticket 票 门票
    travel trip tour journey 旅行 旅游 行程
    visa passport 签证 护照
    job career employment work 工作 职位 招聘
    task todo 任务 待办
    project 项目
    issue bug ticket 问题
    code program script 代码 程序 脚本
    repo repository 仓库
    database db 数据库
    table sheet spreadsheet 表格
    server host instance machine 服务器 主机
    website site web webpage page url 网站 网页
    link url 链接
    browser 浏览器
    search google bing 搜索
    game 游戏
    sport sports match 比赛 体育
    score result grade 分数 成绩 得分
    player athlete 球员
    team club 球队
    book novel 书 书籍 图书
    paper publication literature 论文 文献
    comment reply review feedback 评论 回复 评价
    note memo 笔记 备忘
    report 报告 报表
    meeting conference 会议
    event activity 事件 活动
    product item goods 商品 产品
    order purchase 订单
    shop store 商店
    delivery shipment shipping parcel package express 快递 物流 包裹
    health medical 健康 医疗
    doctor physician 医生
    hospital clinic 医院
    medicine drug medication 药品 药物 药
    disease illness 疾病
    exercise workout fitness 运动 健身
    course class lesson 课程
    school university college 学校 大学
    student pupil 学生
    teacher instructor 老师 教师
    child kid baby 儿童 孩子
    random 随机
    joke 笑话
    horoscope zodiac 星座 运势
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
    """.strip().splitlines()
)
