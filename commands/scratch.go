package commands

import (
	"sync"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// scratch is the memory that requests need while they are decided: hundreds of KiB for a
// deep pipeline. Sessions share it through a pool, so that a quiet session has none.
type scratch struct {
	batch    limiter.Batch
	dims     []limit.Dim // of the batch's requests
	dialects []dialect   // of the replies
	tokens   bool        // some request has a bypass token
	frames   [numFrames]decisionFrame
	fast     struct {
		path    limiter.FastPath
		request limit.Request // only subject and cost are set
	}
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (s *Session) takeScratch() { s.scratch = scratches.Get().(*scratch) }

// giveScratch returns the scratch to the pool. Its batch must be empty.
func (s *Session) giveScratch() {
	scratches.Put(s.scratch)
	s.scratch = nil
}
