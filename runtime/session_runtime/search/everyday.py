"""Synonyms of everyday life, in groups like those of ``synonyms``: money, home, health, play, services."""

EVERYDAY: tuple[str, ...] = tuple(
    """
    friend buddy 好友 朋友
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
    几点 几点钟 时间
    date day 日期
    today current now latest recent 今天 当前 最新 最近 现在
    history historical record log 历史 记录 日志
    news headline article 新闻 资讯
    stock share equity 股票
    price cost rate quote 价格 费用 报价
    exchange currency forex 汇率 货币 外币 兑换
    bank banking 银行
    card 卡 卡片
    money cash fund 资金 钱
    bill invoice 账单 发票
    tax 税
    loan credit mortgage 贷款 信贷
    transaction trade deal 交易
    flight airline plane airplane aircraft 航班 机票 飞机
    train railway rail 火车 列车 高铁
    car vehicle auto automobile 汽车 车辆 租车
    taxi cab ride 出租车 打车
    hotel accommodation lodging 酒店 宾馆 住宿
    restaurant dining 餐厅 餐馆 饭店
    food meal dish 食物 菜品 美食
    recipe cook cooking 菜谱 食谱
    ticket 票 门票
    travel trip tour journey 旅行 旅游 行程
    visa passport 签证 护照
    job career employment work 工作 职位 招聘
    sport sports match 比赛 体育
    score result grade 分数 成绩 得分
    player athlete 球员
    team club 球队
    book novel 书 书籍 图书
    paper publication literature 论文 文献
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
    random shuffle 随机
    horoscope zodiac 星座 运势
    recall withdraw 撤回
    withdraw withdrawal 取现 取款 提现
    deposit 存款 存入
    repay repayment 还款
    debt owe 欠款 债务
    borrow lend 借款 借
    invest investment 投资
    finance financial 理财 财务 金融
    fund 基金
    bond 债券
    portfolio 组合
    interest 利率 利息
    policy 政策 保单
    crypto cryptocurrency coin bitcoin blockchain 加密货币 比特币 区块链
    merchant seller vendor supplier provider 商户 商家 供应商 卖家
    customer client 客户 顾客
    employee staff worker personnel 员工 职员 人员
    salary wage 工资 薪资
    department division 部门
    resume cv 简历
    interview 面试
    attendance 考勤 签到
    training 培训
    budget 预算
    expense spending expenditure 开支 支出 报销
    income revenue earnings 收入
    profit gain 利润
    contract agreement 合同 协议
    lawyer attorney legal law 律师 法律
    risk 风险
    market 市场
    advertisement advert ad advertising 广告
    coupon voucher 优惠券
    discount promotion sale deal 折扣 促销 优惠
    cart basket shopping_cart 购物车
    inventory stock 库存
    gift present 礼物 礼品
    souvenir 纪念品
    appliance 家电 电器
    refrigerator fridge 冰箱
    light lamp 灯 灯光
    door gate 门
    mobile cellphone smartphone 手机
    computer pc laptop 电脑 计算机
    television tv 电视
    home house 房屋 住宅
    apartment flat property estate housing 房产 公寓 房源
    rent rental lease hire 租 租赁 出租
    room 房间
    seat 座位
    depart departure leave 出发 起飞
    arrive arrival 到达 抵达
    airport 机场
    station 车站
    bus coach 公交 巴士
    subway metro underground 地铁
    bike bicycle cycling 骑行 自行车
    walk walking 步行
    parking park 停车
    traffic congestion 交通 路况
    coordinate latitude longitude geolocation 坐标 经纬度
    near nearby nearest around surrounding 附近 周边
    attraction sight sightseeing scenic landmark 景点 景区
    museum 博物馆
    park 公园
    library 图书馆
    cinema theater theatre 影院 剧院
    concert performance 演出
    festival holiday vacation 节日 假期 假日
    anniversary birthday 生日 纪念日
    menu 菜单
    ingredient 食材 配料
    dish cuisine 菜 菜肴
    takeout takeaway delivery 外卖 配送
    drink beverage 饮料
    wine beer alcohol 酒
    coffee 咖啡
    vegetable 蔬菜
    fruit 水果
    calorie 热量 卡路里
    diet nutrition 饮食 营养
    weight 体重 重量
    height 身高 高度
    sleep 睡眠
    symptom 症状
    diagnosis 诊断
    prescription 处方
    vaccine vaccination 疫苗
    patient 患者 病人
    pet animal 宠物 动物
    homework assignment 作业
    question 题目 试题 问题
    answer response reply 答案 回答 答复
    dictionary 词典 字典
    word 单词 词
    sentence 句子
    grammar 语法
    poem poetry 诗 诗歌
    story 故事
    rule 规则
    emergency urgent 紧急
    alarm police 报警
    safe safety security secure 安全
    director 导演
    actor actress cast 演员
    singer artist band 歌手 艺人
    album 专辑
    lyrics 歌词
    series show episode drama 剧 剧集
    anime cartoon manga 动漫 动画
    comedy funny humor humour 喜剧 搞笑
    channel 频道
    live stream broadcast livestream 直播
    subtitle caption 字幕
    emoji emoticon sticker meme 表情
    nickname alias 昵称
    year annual yearly 年 年度
    month monthly 月 每月
    week weekly 周 每周
    day daily 每天
    hour hourly 小时
    minute 分钟
    periodic regular recurring repeat 定期 周期
    yesterday 昨天
    tomorrow 明天
    timezone tz 时区
    countdown timer 倒计时 定时
    goal target objective 目标
    member membership vip 会员
    level grade tier 等级 级别
    point 积分
    reward prize award 奖励 奖
    lottery raffle 抽奖 彩票
    pollution aqi 污染
    air 空气
    humidity 湿度
    rain rainfall precipitation 降雨 雨
    earthquake quake 地震
    oil gas fuel petrol 油 燃油
    electricity power 电力
    insurance insure 保险 投保
    license licence permit 许可 执照
    university college 大学 高校
    parent mother father family 家庭 父母
    wedding marriage 结婚 婚礼
    beauty makeup cosmetic 美容 化妆
    clothes clothing fashion outfit 服装 衣服
    shoe footwear 鞋
    football soccer 足球
    basketball nba 篮球
    tournament league championship competition 联赛 比赛 锦标
    fixture match game 赛程 比赛
    standings ranking leaderboard 积分 排行 排名
    微信 wechat weixin
    微博 weibo
    百度 baidu
    抖音 douyin
    知乎 zhihu
    淘宝 taobao
    支付宝 alipay
    哔哩哔哩 bilibili
    小红书 xiaohongshu
    高德 amap
    钉钉 dingtalk
    飞书 feishu lark
    腾讯 tencent
    阿里巴巴 阿里 alibaba
    携程 ctrip
    美团 meituan
    谷歌 google
    微软 microsoft
    苹果 apple
    推特 twitter
    油管 youtube
    """.strip().splitlines()
)
