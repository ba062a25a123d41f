package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// DynamoDBVariable names the variable with the folder of DynamoDB Local, as
// scripts/provision.sh prepares it.
const DynamoDBVariable = "LIMITGATE_DYNAMODB"

// DynamoDBLocal is a running DynamoDB Local: AWS's own emulator of DynamoDB and its
// streams, that keeps all data in memory, with separate tables for each access key. Its
// methods may be called from any goroutine.
type DynamoDBLocal struct{ emulator }

// StartDynamoDBLocal starts an emulator with its log in folder. It returns when the emulator
// accepts connections.
func StartDynamoDBLocal(folder string) (*DynamoDBLocal, error) {
	home := os.Getenv(DynamoDBVariable)
	if home == "" {
		return nil, fmt.Errorf("find DynamoDB Local: set %s to what scripts/provision.sh dynamodb prints", DynamoDBVariable)
	}
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, fmt.Errorf("start DynamoDB Local: %w", err)
	}
	d := new(DynamoDBLocal)
	err = d.launch(folder, dynamoDBPorts, func(number int) (program, []string) {
		return program{name: "DynamoDB Local", path: java, ready: "Listening on " + loopbackAddr(number)}, dynamoDBArgs(home, number)
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// dynamoDBArgs set a small heap, a collector of one thread and the fast compiler, because
// the emulator shares the machine with the tests. Loopback starts it on the loopback
// interface only, for which it has no option.
func dynamoDBArgs(home string, number int) []string {
	return []string{
		"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.library.path=" + filepath.Join(home, "DynamoDBLocal_lib"),
		"-cp", home + string(os.PathListSeparator) + filepath.Join(home, "DynamoDBLocal.jar"),
		"Loopback", "-inMemory", "-disableTelemetry", "-port", strconv.Itoa(number),
	}
}
