package table

// SnapshotBegin begins the text of the snapshots that proxies of all releases write of a table; the number of its format follows.
const SnapshotBegin = "limitgate limits, snapshot "
