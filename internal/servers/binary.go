package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// BinaryFolderVariable names the variable with the folder that holds
// redis-server and redis-cli.
const BinaryFolderVariable = "LIMITGATE_REDIS_BIN"

// Binary returns the path of redis-server, redis-cli or redis-benchmark.
func Binary(name string) (string, error) {
	wanted := name
	if folder := os.Getenv(BinaryFolderVariable); folder != "" {
		wanted = filepath.Join(folder, name)
	}
	path, err := exec.LookPath(wanted)
	if err != nil {
		return "", fmt.Errorf("find %s: run make test, or set %s to the folder that holds it: %w",
			name, BinaryFolderVariable, err)
	}
	return path, nil
}
