package proxy

import (
	"os"
	"testing"

	"github.com/limitgate/limitgate/internal/redistest"
)

func TestMain(m *testing.M) { os.Exit(redistest.Main(m)) }
