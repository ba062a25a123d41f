package redistest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// binaryFolderVariable names the folder that holds redis-server and redis-cli.
const binaryFolderVariable = "LIMITGATE_REDIS_BIN"

// findBinary returns the path of redis-server or redis-cli.
func findBinary(name string) (string, error) {
	wanted := name
	if folder := os.Getenv(binaryFolderVariable); folder != "" {
		wanted = filepath.Join(folder, name)
	}
	path, err := exec.LookPath(wanted)
	if err != nil {
		return "", fmt.Errorf("find %s: run make test, or set %s to the folder that holds it: %w",
			name, binaryFolderVariable, err)
	}
	return path, nil
}
