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
pub const FP_TX_PKT_PREPARE: usize = 72;
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
pub const MBUF_HASH_RSS: usize = 44;
/// As the C compiler sees it.
pub const MBUF_HASH_FDIR_HI: usize = 48;
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
pub const MBUF_F_RX_VLAN: u64 = 1;
/// As the C compiler sees it.
pub const MBUF_F_RX_VLAN_STRIPPED: u64 = 64;
/// As the C compiler sees it.
pub const MBUF_F_RX_QINQ: u64 = 1048576;
/// As the C compiler sees it.
pub const MBUF_F_RX_QINQ_STRIPPED: u64 = 32768;
/// As the C compiler sees it.
pub const MBUF_F_RX_RSS_HASH: u64 = 2;
/// As the C compiler sees it.
pub const MBUF_F_RX_FDIR: u64 = 4;
/// As the C compiler sees it.
pub const MBUF_F_RX_FDIR_ID: u64 = 8192;
/// As the C compiler sees it.
pub const MBUF_F_RX_LRO: u64 = 65536;
/// As the C compiler sees it.
pub const MBUF_F_RX_IP_CKSUM_BAD: u64 = 16;
/// As the C compiler sees it.
pub const MBUF_F_RX_IP_CKSUM_GOOD: u64 = 128;
/// As the C compiler sees it.
pub const MBUF_F_RX_L4_CKSUM_BAD: u64 = 8;
/// As the C compiler sees it.
pub const MBUF_F_RX_L4_CKSUM_GOOD: u64 = 256;
/// As the C compiler sees it.
pub const MBUF_F_RX_OUTER_IP_CKSUM_BAD: u64 = 32;
/// As the C compiler sees it.
pub const MBUF_F_RX_OUTER_L4_CKSUM_BAD: u64 = 2097152;
/// As the C compiler sees it.
pub const MBUF_F_RX_OUTER_L4_CKSUM_GOOD: u64 = 4194304;
/// As the C compiler sees it.
pub const MBUF_F_TX_OFFLOAD_MASK: u64 = 2305840810190438400;
/// As the C compiler sees it.
pub const MBUF_F_TX_VLAN: u64 = 144115188075855872;
/// As the C compiler sees it.
pub const MBUF_F_TX_IPV4: u64 = 36028797018963968;
/// As the C compiler sees it.
pub const MBUF_F_TX_IPV6: u64 = 72057594037927936;
/// As the C compiler sees it.
pub const MBUF_F_TX_IP_CKSUM: u64 = 18014398509481984;
/// As the C compiler sees it.
pub const MBUF_F_TX_TCP_CKSUM: u64 = 4503599627370496;
/// As the C compiler sees it.
pub const MBUF_F_TX_UDP_CKSUM: u64 = 13510798882111488;
/// As the C compiler sees it.
pub const MBUF_F_TX_SCTP_CKSUM: u64 = 9007199254740992;
/// As the C compiler sees it.
pub const MBUF_F_TX_TCP_SEG: u64 = 1125899906842624;
/// As the C compiler sees it.
pub const MBUF_L2_LEN_SHIFT: u32 = 0;
/// As the C compiler sees it.
pub const MBUF_L2_LEN_BITS: u32 = 7;
/// As the C compiler sees it.
pub const MBUF_L3_LEN_SHIFT: u32 = 7;
/// As the C compiler sees it.
pub const MBUF_L3_LEN_BITS: u32 = 9;
/// As the C compiler sees it.
pub const MBUF_L4_LEN_SHIFT: u32 = 16;
/// As the C compiler sees it.
pub const MBUF_L4_LEN_BITS: u32 = 8;
/// As the C compiler sees it.
pub const MBUF_TSO_SEGSZ_SHIFT: u32 = 24;
/// As the C compiler sees it.
pub const MBUF_PORT_INVALID: u16 = 65535;
/// As the C compiler sees it.
pub const PKTMBUF_HEADROOM: u16 = 128;
/// As the C compiler sees it.
pub const MEMPOOL_SIZE: usize = 192;
/// As the C compiler sees it.
pub const MEMPOOL_NAME: usize = 0;
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
pub const ETH_ALL: u16 = 32;
/// As the C compiler sees it.
pub const ETH_DEV_INTR_LSC: u32 = 2;
/// As the C compiler sees it.
pub const RX_OFFLOAD_VLAN_STRIP: u64 = 1;
/// As the C compiler sees it.
pub const RX_OFFLOAD_IPV4_CKSUM: u64 = 2;
/// As the C compiler sees it.
pub const RX_OFFLOAD_UDP_CKSUM: u64 = 4;
/// As the C compiler sees it.
pub const RX_OFFLOAD_TCP_CKSUM: u64 = 8;
/// As the C compiler sees it.
pub const RX_OFFLOAD_TCP_LRO: u64 = 16;
/// As the C compiler sees it.
pub const RX_OFFLOAD_QINQ_STRIP: u64 = 32;
/// As the C compiler sees it.
pub const RX_OFFLOAD_OUTER_IPV4_CKSUM: u64 = 64;
/// As the C compiler sees it.
pub const RX_OFFLOAD_VLAN_FILTER: u64 = 512;
/// As the C compiler sees it.
pub const RX_OFFLOAD_VLAN_EXTEND: u64 = 1024;
/// As the C compiler sees it.
pub const RX_OFFLOAD_SCATTER: u64 = 8192;
/// As the C compiler sees it.
pub const RX_OFFLOAD_TIMESTAMP: u64 = 16384;
/// As the C compiler sees it.
pub const RX_OFFLOAD_KEEP_CRC: u64 = 65536;
/// As the C compiler sees it.
pub const RX_OFFLOAD_SCTP_CKSUM: u64 = 131072;
/// As the C compiler sees it.
pub const RX_OFFLOAD_OUTER_UDP_CKSUM: u64 = 262144;
/// As the C compiler sees it.
pub const RX_OFFLOAD_RSS_HASH: u64 = 524288;
/// As the C compiler sees it.
pub const TX_OFFLOAD_VLAN_INSERT: u64 = 1;
/// As the C compiler sees it.
pub const TX_OFFLOAD_IPV4_CKSUM: u64 = 2;
/// As the C compiler sees it.
pub const TX_OFFLOAD_UDP_CKSUM: u64 = 4;
/// As the C compiler sees it.
pub const TX_OFFLOAD_TCP_CKSUM: u64 = 8;
/// As the C compiler sees it.
pub const TX_OFFLOAD_SCTP_CKSUM: u64 = 16;
/// As the C compiler sees it.
pub const TX_OFFLOAD_TCP_TSO: u64 = 32;
/// As the C compiler sees it.
pub const TX_OFFLOAD_UDP_TSO: u64 = 64;
/// As the C compiler sees it.
pub const TX_OFFLOAD_OUTER_IPV4_CKSUM: u64 = 128;
/// As the C compiler sees it.
pub const TX_OFFLOAD_QINQ_INSERT: u64 = 256;
/// As the C compiler sees it.
pub const TX_OFFLOAD_VXLAN_TNL_TSO: u64 = 512;
/// As the C compiler sees it.
pub const TX_OFFLOAD_GRE_TNL_TSO: u64 = 1024;
/// As the C compiler sees it.
pub const TX_OFFLOAD_IPIP_TNL_TSO: u64 = 2048;
/// As the C compiler sees it.
pub const TX_OFFLOAD_GENEVE_TNL_TSO: u64 = 4096;
/// As the C compiler sees it.
pub const TX_OFFLOAD_MULTI_SEGS: u64 = 32768;
/// As the C compiler sees it.
pub const TX_OFFLOAD_UDP_TNL_TSO: u64 = 262144;
/// As the C compiler sees it.
pub const TX_OFFLOAD_IP_TNL_TSO: u64 = 524288;
/// As the C compiler sees it.
pub const TX_OFFLOAD_OUTER_UDP_CKSUM: u64 = 1048576;
/// As the C compiler sees it.
pub const TX_OFFLOAD_SEND_ON_TIMESTAMP: u64 = 2097152;
/// As the C compiler sees it.
pub const RSS_TYPE_IPV4: u64 = 4;
/// As the C compiler sees it.
pub const RSS_TYPE_FRAG_IPV4: u64 = 8;
/// As the C compiler sees it.
pub const RSS_TYPE_NONFRAG_IPV4_TCP: u64 = 16;
/// As the C compiler sees it.
pub const RSS_TYPE_NONFRAG_IPV4_UDP: u64 = 32;
/// As the C compiler sees it.
pub const RSS_TYPE_NONFRAG_IPV4_SCTP: u64 = 64;
/// As the C compiler sees it.
pub const RSS_TYPE_NONFRAG_IPV4_OTHER: u64 = 128;
/// As the C compiler sees it.
pub const RSS_TYPE_IPV6: u64 = 256;
/// As the C compiler sees it.
pub const RSS_TYPE_FRAG_IPV6: u64 = 512;
/// As the C compiler sees it.
pub const RSS_TYPE_NONFRAG_IPV6_TCP: u64 = 1024;
/// As the C compiler sees it.
pub const RSS_TYPE_NONFRAG_IPV6_UDP: u64 = 2048;
/// As the C compiler sees it.
pub const RSS_TYPE_NONFRAG_IPV6_SCTP: u64 = 4096;
/// As the C compiler sees it.
pub const RSS_TYPE_NONFRAG_IPV6_OTHER: u64 = 8192;
/// As the C compiler sees it.
pub const RSS_TYPE_L2_PAYLOAD: u64 = 16384;
/// As the C compiler sees it.
pub const RSS_TYPE_IPV6_EX: u64 = 32768;
/// As the C compiler sees it.
pub const RSS_TYPE_IPV6_TCP_EX: u64 = 65536;
/// As the C compiler sees it.
pub const RSS_TYPE_IPV6_UDP_EX: u64 = 131072;
/// As the C compiler sees it.
pub const RSS_TYPE_PORT: u64 = 262144;
/// As the C compiler sees it.
pub const RSS_TYPE_VXLAN: u64 = 524288;
/// As the C compiler sees it.
pub const RSS_TYPE_GENEVE: u64 = 1048576;
/// As the C compiler sees it.
pub const RSS_TYPE_NVGRE: u64 = 2097152;
/// As the C compiler sees it.
pub const RSS_TYPE_GTPU: u64 = 8388608;
/// As the C compiler sees it.
pub const RSS_TYPE_ETH: u64 = 16777216;
/// As the C compiler sees it.
pub const RSS_TYPE_S_VLAN: u64 = 33554432;
/// As the C compiler sees it.
pub const RSS_TYPE_C_VLAN: u64 = 67108864;
/// As the C compiler sees it.
pub const RSS_TYPE_ESP: u64 = 134217728;
/// As the C compiler sees it.
pub const RSS_TYPE_AH: u64 = 268435456;
/// As the C compiler sees it.
pub const RSS_TYPE_L2TPV3: u64 = 536870912;
/// As the C compiler sees it.
pub const RSS_TYPE_PFCP: u64 = 1073741824;
/// As the C compiler sees it.
pub const RSS_TYPE_PPPOE: u64 = 2147483648;
/// As the C compiler sees it.
pub const RSS_TYPE_ECPRI: u64 = 4294967296;
/// As the C compiler sees it.
pub const RSS_TYPE_MPLS: u64 = 8589934592;
/// As the C compiler sees it.
pub const RSS_TYPE_IPV4_CHKSUM: u64 = 17179869184;
/// As the C compiler sees it.
pub const RSS_TYPE_L4_CHKSUM: u64 = 34359738368;
/// As the C compiler sees it.
pub const RSS_TYPE_L2TPV2: u64 = 68719476736;
/// As the C compiler sees it.
pub const RSS_TYPE_L2_DST_ONLY: u64 = 288230376151711744;
/// As the C compiler sees it.
pub const RSS_TYPE_L2_SRC_ONLY: u64 = 576460752303423488;
/// As the C compiler sees it.
pub const RSS_TYPE_L4_DST_ONLY: u64 = 1152921504606846976;
/// As the C compiler sees it.
pub const RSS_TYPE_L4_SRC_ONLY: u64 = 2305843009213693952;
/// As the C compiler sees it.
pub const RSS_TYPE_L3_DST_ONLY: u64 = 4611686018427387904;
/// As the C compiler sees it.
pub const RSS_TYPE_L3_SRC_ONLY: u64 = 9223372036854775808;
/// As the C compiler sees it.
pub const VLAN_STRIP_OFFLOAD: u64 = 1;
/// As the C compiler sees it.
pub const VLAN_FILTER_OFFLOAD: u64 = 2;
/// As the C compiler sees it.
pub const VLAN_EXTEND_OFFLOAD: u64 = 4;
/// As the C compiler sees it.
pub const VLAN_QINQ_STRIP_OFFLOAD: u64 = 8;
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
pub const QSBR_ACKED: usize = 8;
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
pub const RING_BYTES: usize = 384;
/// As the C compiler sees it.
pub const RING_MASK: usize = 52;
/// As the C compiler sees it.
pub const RING_CAPACITY: usize = 56;
/// As the C compiler sees it.
pub const RING_PROD_HEAD: usize = 128;
/// As the C compiler sees it.
pub const RING_PROD_TAIL: usize = 132;
/// As the C compiler sees it.
pub const RING_CONS_HEAD: usize = 256;
/// As the C compiler sees it.
pub const RING_CONS_TAIL: usize = 260;
/// As the C compiler sees it.
pub const RING_NAME_SIZE: usize = 29;
/// As the C compiler sees it.
pub const RING_EXACT: u32 = 4;
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
