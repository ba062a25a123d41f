package memory_test

import (
	"testing"

	"github.com/limitgate/limitgate/internal/storetest"
	"github.com/limitgate/limitgate/memory"
)

func TestSerialOrder(t *testing.T) {
	storetest.SerialOrder(t, memory.New(memory.Options{}), storetest.Seed(t), 300)
}

func TestManySlots(t *testing.T) {
	storetest.ManySlots(t, memory.New(memory.Options{}), storetest.Seed(t), 300)
}

func TestCrowd(t *testing.T) { storetest.Crowd(t, memory.New(memory.Options{})) }
