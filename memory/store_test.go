package memory_test

import (
	"testing"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/memory"
)

func TestConformance(t *testing.T) { storetest.Run(t, memory.New(memory.Options{})) }
