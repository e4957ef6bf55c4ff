/// As the C compiler sees it.
pub const FP_OPS_SIZE: usize = 128;
/// As the C compiler sees it.
pub const FP_RX_PKT_BURST: usize = 0;
/// As the C compiler sees it.
pub const FP_RXQ_DATA: usize = 24;
/// As the C compiler sees it.
pub const FP_RXQ_CLBK: usize = 32;
/// As the C compiler sees it.
pub const FP_TX_PKT_BURST: usize = 64;
/// As the C compiler sees it.
pub const FP_TXQ_DATA: usize = 88;
/// As the C compiler sees it.
pub const FP_TXQ_CLBK: usize = 96;
/// As the C compiler sees it.
pub const MBUF_SIZE: usize = 128;
/// As the C compiler sees it.
pub const MBUF_BUF_ADDR: usize = 0;
/// As the C compiler sees it.
pub const MBUF_NEXT: usize = 64;
/// As the C compiler sees it.
pub const MBUF_DATA_OFF: usize = 16;
/// As the C compiler sees it.
pub const MBUF_REFCNT: usize = 18;
/// As the C compiler sees it.
pub const MBUF_NB_SEGS: usize = 20;
/// As the C compiler sees it.
pub const MBUF_PORT: usize = 22;
/// As the C compiler sees it.
pub const MBUF_OL_FLAGS: usize = 24;
/// As the C compiler sees it.
pub const MBUF_PACKET_TYPE: usize = 32;
/// As the C compiler sees it.
pub const MBUF_PKT_LEN: usize = 36;
/// As the C compiler sees it.
pub const MBUF_DATA_LEN: usize = 40;
/// As the C compiler sees it.
pub const MBUF_VLAN_TCI: usize = 42;
/// As the C compiler sees it.
pub const MBUF_VLAN_TCI_OUTER: usize = 52;
/// As the C compiler sees it.
pub const MBUF_BUF_LEN: usize = 54;
/// As the C compiler sees it.
pub const MBUF_POOL: usize = 56;
/// As the C compiler sees it.
pub const MBUF_TX_OFFLOAD: usize = 72;
/// As the C compiler sees it.
pub const MBUF_SHINFO: usize = 80;
/// As the C compiler sees it.
pub const MBUF_PRIV_SIZE: usize = 88;
/// As the C compiler sees it.
pub const MBUF_HASH: usize = 44;
/// As the C compiler sees it.
pub const MBUF_HASH_SIZE: usize = 8;
/// As the C compiler sees it.
pub const MBUF_DYNFIELD1: usize = 92;
/// As the C compiler sees it.
pub const MBUF_DYNFIELD1_SIZE: usize = 36;
/// As the C compiler sees it.
pub const MBUF_IOVA: usize = 8;
/// As the C compiler sees it.
pub const MBUF_IOVA_SIZE: usize = 8;
/// As the C compiler sees it.
pub const MBUF_DYNFIELD2: usize = 0;
/// As the C compiler sees it.
pub const MBUF_DYNFIELD2_SIZE: usize = 0;
/// As the C compiler sees it.
pub const SHINFO_REFCNT: usize = 16;
/// As the C compiler sees it.
pub const MBUF_F_INDIRECT: u64 = 4611686018427387904;
/// As the C compiler sees it.
pub const MBUF_F_EXTERNAL: u64 = 2305843009213693952;
/// As the C compiler sees it.
pub const MBUF_PORT_INVALID: u16 = 65535;
/// As the C compiler sees it.
pub const PKTMBUF_HEADROOM: u16 = 128;
/// As the C compiler sees it.
pub const MEMPOOL_SIZE: usize = 192;
/// As the C compiler sees it.
pub const MEMPOOL_CACHE_SIZE: usize = 68;
/// As the C compiler sees it.
pub const MEMPOOL_LOCAL_CACHE: usize = 96;
/// As the C compiler sees it.
pub const CACHE_STRIDE: usize = 8256;
/// As the C compiler sees it.
pub const CACHE_SIZE: usize = 0;
/// As the C compiler sees it.
pub const CACHE_FLUSHTHRESH: usize = 4;
/// As the C compiler sees it.
pub const CACHE_LEN: usize = 8;
/// As the C compiler sees it.
pub const CACHE_OBJS: usize = 64;
/// As the C compiler sees it.
pub const MEMPOOL_NO_IOVA_CONTIG: u32 = 32;
/// As the C compiler sees it.
pub const CACHE_MAX_SIZE: usize = 512;
/// As the C compiler sees it.
pub const MAX_LCORE: usize = 128;
/// As the C compiler sees it.
pub const MAX_ETHPORTS: usize = 32;
/// As the C compiler sees it.
pub const ACL_RULE_PRIORITY: usize = 4;
/// As the C compiler sees it.
pub const ACL_RULE_USERDATA: usize = 8;
/// As the C compiler sees it.
pub const ACL_RULE_FIELDS: usize = 16;
/// As the C compiler sees it.
pub const ACL_FIELD_SIZE: usize = 16;
/// As the C compiler sees it.
pub const ACL_FIELD_MASK_RANGE: usize = 8;
/// As the C compiler sees it.
pub const LPM_TBL24: usize = 0;
/// As the C compiler sees it.
pub const LPM_TBL8: usize = 67108864;
/// As the C compiler sees it.
pub const LPM_TBL24_ENTRIES: u32 = 16777216;
/// As the C compiler sees it.
pub const LPM_GROUP_ENTRIES: u32 = 256;
/// As the C compiler sees it.
pub const LPM_EXTENDED: u32 = 50331648;
/// As the C compiler sees it.
pub const LPM_FOUND: u32 = 16777216;
/// As the C compiler sees it.
pub const QSBR_TOKEN: usize = 0;
/// As the C compiler sees it.
pub const QSBR_COUNTERS: usize = 128;
/// As the C compiler sees it.
pub const QSBR_COUNTER_STRIDE: usize = 64;
/// As the C compiler sees it.
pub const QSBR_COUNTER: usize = 0;
/// As the C compiler sees it.
pub const QSBR_ALIGN: usize = 64;
/// As the C compiler sees it.
pub const QSBR_OFFLINE: u64 = 0;
/// As the C compiler sees it.
pub const GRAPH_TAIL: usize = 0;
/// As the C compiler sees it.
pub const GRAPH_HEAD: usize = 4;
/// As the C compiler sees it.
pub const GRAPH_CIR_MASK: usize = 8;
/// As the C compiler sees it.
pub const GRAPH_CIR_START: usize = 16;
/// As the C compiler sees it.
pub const GRAPH_NODES_START: usize = 24;
/// As the C compiler sees it.
pub const GRAPH_NB_NODES: usize = 12;
/// As the C compiler sees it.
pub const NODE_NEXT: usize = 8;
/// As the C compiler sees it.
pub const NODE_ID: usize = 12;
/// As the C compiler sees it.
pub const NODE_NB_EDGES: usize = 20;
/// As the C compiler sees it.
pub const NODE_CTX: usize = 192;
/// As the C compiler sees it.
pub const NODE_SIZE: usize = 208;
/// As the C compiler sees it.
pub const NODE_IDX: usize = 210;
/// As the C compiler sees it.
pub const NODE_OFF: usize = 212;
/// As the C compiler sees it.
pub const NODE_TOTAL_CYCLES: usize = 216;
/// As the C compiler sees it.
pub const NODE_TOTAL_CALLS: usize = 224;
/// As the C compiler sees it.
pub const NODE_TOTAL_OBJS: usize = 232;
/// As the C compiler sees it.
pub const NODE_OBJS: usize = 240;
/// As the C compiler sees it.
pub const NODE_PROCESS: usize = 248;
/// As the C compiler sees it.
pub const NODE_NODES: usize = 256;
/// As the C compiler sees it.
pub const GRAPH_NAME_SIZE: usize = 64;
/// As the C compiler sees it.
pub const NODE_NAME_SIZE: usize = 64;
