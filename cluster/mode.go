package cluster

// Mode is how batches of checks are sent to a master.
type Mode string

// The modes. All of them make the same decisions.
const (
	// ModeSingle is one script call for a batch, which declares its keys: for a Redis
	// without cluster mode.
	ModeSingle Mode = "single"
	// ModeShardWide is one script call for a batch, which does not declare its keys,
	// because they are in many slots of a cluster.
	ModeShardWide Mode = "shard-wide"
	// ModePerSlot is a script call for each slot in a batch.
	ModePerSlot Mode = "per-slot"
)

// String describes the mode.
func (m Mode) String() string {
	switch m {
	case ModeSingle:
		return "single: one script call decides a batch"
	case ModeShardWide:
		return "shard-wide: one script call decides a batch for all slots of a master"
	case ModePerSlot:
		return "per-slot: a batch takes a script call for each slot in it"
	default:
		return "none"
	}
}

// mode returns the mode of a connection with these options.
func (o batchOptions) mode() Mode {
	switch {
	case !o.acrossSlots:
		return ModePerSlot
	case o.declared:
		return ModeSingle
	default:
		return ModeShardWide
	}
}
