package checks

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// tasks are the task definitions of deploy/ecs.
var tasks = []string{"service.json", "sidecar.json"}

// decodeTask reads a task definition. A field that its type does not have is an error.
func decodeTask(text []byte) (task types.TaskDefinition, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	err = decoder.Decode(&task)
	return task, err
}

func readTask(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "ecs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// taskProblems returns the differences between a task definition and the program, and
// mistakes in it that ECS accepts.
func taskProblems(task types.TaskDefinition, p program) (found []string) {
	i := slices.IndexFunc(task.ContainerDefinitions, func(c types.ContainerDefinition) bool { return value(c.Name) == "limitgate" })
	if i < 0 {
		return []string{"no container is called limitgate"}
	}
	c := task.ContainerDefinitions[i]
	settings, problems := taskSettings(c, p)
	if settings == nil {
		return problems
	}
	found = append(problems, endProblems(c, settings)...)
	if settings["emf.sink"] != "stdout" || c.LogConfiguration == nil || c.LogConfiguration.LogDriver != types.LogDriverAwslogs {
		found = append(found, "metrics do not reach CloudWatch: EMF goes to standard output, and that to awslogs")
	}
	if !value(c.ReadonlyRootFilesystem) || !strings.HasPrefix(value(c.User), "65532") || c.LinuxParameters == nil ||
		c.LinuxParameters.Capabilities == nil || !slices.Equal(c.LinuxParameters.Capabilities.Drop, []string{"ALL"}) {
		found = append(found, "the container may more than it needs")
	}
	if value(task.ExecutionRoleArn) == "" || value(task.TaskRoleArn) == "" || value(task.ExecutionRoleArn) == value(task.TaskRoleArn) {
		found = append(found, "the roles of ECS and of the proxy are not apart")
	}
	for _, other := range task.ContainerDefinitions {
		waits := slices.ContainsFunc(other.DependsOn, func(d types.ContainerDependency) bool {
			return value(d.ContainerName) == "limitgate" && d.Condition == types.ContainerConditionHealthy
		})
		if value(other.Name) != "limitgate" && !waits {
			found = append(found, value(other.Name)+" does not wait for the proxy")
		}
	}
	return append(found, portProblems(c, settings, len(task.ContainerDefinitions) > 1)...)
}

// taskSettings returns the settings of the proxy in a container, or none if it refuses them.
func taskSettings(c types.ContainerDefinition, p program) (settings map[string]string, found []string) {
	if !slices.Equal(c.EntryPoint, []string{"/limitgate"}) || len(c.Command) == 0 || c.Command[0] != "serve" {
		return nil, []string{"the command is not /limitgate serve"}
	}
	var environment []string
	for _, variable := range c.Environment {
		name := value(variable.Name)
		environment = append(environment, name+"="+value(variable.Value))
		flag := strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, "LIMITGATE_")), "_", "-")
		if strings.HasPrefix(name, "LIMITGATE_") && !p.flags[flag] {
			found = append(found, "limitgate serve does not read "+name)
		}
	}
	if len(c.Secrets) > 0 {
		found = append(found, "a secret is in the environment: the proxy reads it from Secrets Manager itself")
	}
	settings, err := p.settings(environment, c.Command[1:]...)
	if err != nil {
		return nil, append(found, err.Error())
	}
	return settings, found
}

// endProblems checks health, memory and the end.
func endProblems(c types.ContainerDefinition, settings map[string]string) (found []string) {
	h := c.HealthCheck
	if h == nil || !slices.Equal(h.Command, []string{"CMD", "/limitgate", "health"}) || value(h.Timeout) >= value(h.Interval) || value(h.Timeout) <= 2 {
		found = append(found, "the health check is not limitgate health, with its 2 s")
	}
	end, err := time.ParseDuration(settings["shutdown_timeout"])
	if err != nil {
		found = append(found, err.Error())
	}
	// The exports of traces and events have two seconds more. Fargate waits for two minutes at most.
	if stop := time.Duration(value(c.StopTimeout)) * time.Second; stop <= end+2*time.Second || stop > 2*time.Minute {
		found = append(found, fmt.Sprintf("the proxy is killed after %s, and its end may take %s", stop, end))
	}
	i := slices.IndexFunc(c.Environment, func(v types.KeyValuePair) bool { return value(v.Name) == "GOMEMLIMIT" })
	if i < 0 {
		return append(found, "no GOMEMLIMIT")
	}
	limit, err := strconv.Atoi(strings.TrimSuffix(value(c.Environment[i].Value), "MiB"))
	if memory := int(value(c.Memory)); err != nil || limit < memory*8/10 || limit > memory*95/100 {
		found = append(found, fmt.Sprintf("GOMEMLIMIT is %s of %d MiB", value(c.Environment[i].Value), memory))
	}
	return found
}

// portProblems checks that others reach a service, and only its own task a sidecar.
func portProblems(c types.ContainerDefinition, settings map[string]string, sidecar bool) (found []string) {
	x := proxyOf{settings: settings}
	listen, open := x.port("listen")
	if _, reached := x.port("admin"); reached {
		found = append(found, "the admin address is open, and nothing needs it")
	}
	mapped := slices.ContainsFunc(c.PortMappings, func(m types.PortMapping) bool { return value(m.ContainerPort) == listen })
	if open != mapped || sidecar == mapped || len(c.PortMappings) > 1 {
		found = append(found, fmt.Sprintf("the proxy listens on %s, the ports of the container are others", settings["listen"]))
	}
	return found
}

// value returns the value of a pointer, or the zero value.
func value[T any](pointer *T) (v T) {
	if pointer != nil {
		v = *pointer
	}
	return v
}

func TestTaskDefinitionsMatchTheProgram(t *testing.T) {
	p := builtProgram(t)
	for _, name := range tasks {
		task, err := decodeTask([]byte(readTask(t, name)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, problem := range taskProblems(task, p) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

func TestMistakesInTaskDefinitionsAreReported(t *testing.T) {
	p := builtProgram(t)
	for name, row := range map[string]struct{ file, old, new, want string }{
		"an unknown field":       {"service.json", "stopTimeout", "stopTimeOutSeconds", `unknown field "stopTimeOutSeconds"`},
		"an unknown variable":    {"service.json", "LIMITGATE_EMF_SERVICE", "LIMITGATE_EMF_NAME", "does not read LIMITGATE_EMF_NAME"},
		"an unknown flag":        {"sidecar.json", "--limits=", "--limits-file=", "limits-file"},
		"two ways to log in":     {"sidecar.json", `"LIMITGATE_REDIS_IAM_CACHE"`, `"LIMITGATE_REDIS_PASSWORD_SECRET"`, "print settings"},
		"another health check":   {"service.json", `"/limitgate", "health"`, `"/limitgate", "ready"`, "health check"},
		"a short end":            {"sidecar.json", `"stopTimeout": 30`, `"stopTimeout": 12`, "is killed after 12s"},
		"no wait":                {"sidecar.json", "HEALTHY", "START", "does not wait"},
		"one role":               {"service.json", "role/limitgate-task", "role/limitgate-execution", "not apart"},
		"metrics to a file":      {"service.json", `"value": "stdout"`, `"value": "file:/tmp/emf"`, "metrics do not reach"},
		"a writable root":        {"service.json", `"readonlyRootFilesystem": true`, `"readonlyRootFilesystem": false`, "may more"},
		"a port that is closed":  {"service.json", `"value": ":6380"`, `"value": "127.0.0.1:6380"`, "are others"},
		"an open sidecar":        {"sidecar.json", `"LIMITGATE_LISTEN", "value": "127.0.0.1:6380"`, `"LIMITGATE_LISTEN", "value": ":6380"`, "unsafe-open"},
		"too much memory for Go": {"sidecar.json", "230MiB", "2300MiB", "GOMEMLIMIT"},
	} {
		t.Run(name, func(t *testing.T) {
			text := readTask(t, row.file)
			changed := strings.Replace(text, row.old, row.new, 1)
			if changed == text {
				t.Fatalf("%s does not have %q any more", row.file, row.old)
			}
			task, err := decodeTask([]byte(changed))
			problems := []string{fmt.Sprint(err)}
			if err == nil {
				problems = taskProblems(task, p)
			}
			if !slices.ContainsFunc(problems, func(s string) bool { return strings.Contains(s, row.want) }) {
				t.Errorf("%q, want %s", problems, row.want)
			}
		})
	}
}
