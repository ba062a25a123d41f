package servers

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// DynamoDBVariable names the variable with the folder of DynamoDB Local, as
// scripts/provision.sh leaves it.
const DynamoDBVariable = "LIMITGATE_DYNAMODB"

// DynamoDBLocal is a running DynamoDB Local: AWS's own emulator of DynamoDB and its streams,
// that keeps all in memory, with tables of its own for each access key. Its methods may be
// called from any goroutine.
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
		return program{"DynamoDB Local", java, "Listening on " + loopbackAddr(number)}, dynamoDBArgs(home, number)
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

// dynamoDBArgs are for a small heap that is collected by one thread, and for the compiler
// that is done soon: it shares the machine with what it is for. Loopback starts it on the loopback interface only, which none of its
// own options does.
func dynamoDBArgs(home string, number int) []string {
	return []string{
		"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.library.path=" + filepath.Join(home, "DynamoDBLocal_lib"),
		"-cp", home + string(os.PathListSeparator) + filepath.Join(home, "DynamoDBLocal.jar"),
		"Loopback", "-inMemory", "-disableTelemetry", "-port", strconv.Itoa(number),
	}
}
