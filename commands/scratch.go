package commands

import (
	"sync"

	"github.com/limitgate/limitgate/limit"
	"github.com/limitgate/limitgate/limiter"
)

// scratch is the memory that requests need while they are decided: hundreds of KiB for
// a deep pipeline. Sessions share it, so that a quiet one has none.
type scratch struct {
	batch    limiter.Batch
	dims     []limit.Dim // the dimensions of the batch's requests
	dialects []dialect   // how they are answered
}

var scratches = sync.Pool{New: func() any { return new(scratch) }}

func (s *Session) takeScratch() { s.scratch = scratches.Get().(*scratch) }

// giveScratch ends the use of the scratch, whose batch must be empty.
func (s *Session) giveScratch() {
	scratches.Put(s.scratch)
	s.scratch = nil
}
