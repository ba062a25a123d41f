package cloudformation

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// call is one request of the code to AWS, and the policies that allow it.
type call struct {
	file, function, operation string // operation is the name in the SDK
	// actions are the names in IAM; none for a call that needs no permission.
	actions  []string
	policies []string
	resource string
	// also are other resources that the same call needs.
	also []string
	// condition is that of the statement, as JSON.
	condition string
	// unallowed is the reason why no policy allows it.
	unallowed string
}

func (c call) String() string { return c.file + " " + c.function + " " + c.operation }

// The names of the policies. The callers of a function cannot be read from the code,
// since calls go through interfaces: these columns are kept by hand. A test checks that
// the table has every function that calls AWS, and no other. No test finds a new caller
// of such a function.
const (
	proxy           = "ProxyPolicy"
	controlPlane    = "ControlPlanePolicy"
	relayFunction   = "RelayFunctionPolicy"
	auditFunction   = "AuditFunctionPolicy"
	cellsFunction   = "CellsFunctionPolicy"
	operator        = "OperatorPolicy"
	tenantOperator  = "TenantOperatorPolicy"
	rolloutOperator = "RolloutOperatorPolicy"
	auditor         = "AuditorPolicy"
	storeSecret     = "StoreSecretPolicy"
	storeConnect    = "StoreConnectPolicy"
	serverless      = "ServerlessConnectPolicy"
)

// byAPerson is the reason why no policy allows the checks of limitgate aws-check.
const byAPerson = "a person checks an account with credentials that may do all of it"

// servicePath is the prefix of the import path of the client of each service.
const servicePath = "github.com/aws/aws-sdk-go-v2/service/"

// callsOf returns the AWS operations of a file, with their functions: every request of
// the SDK is an Input of its operation, also where a paginator or a waiter sends it.
func callsOf(file *ast.File) (operations []string) {
	services := map[string]string{}
	for _, spec := range file.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		service, found := strings.CutPrefix(imported, servicePath)
		if !found || strings.Contains(service, "/") {
			continue
		}
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		services[name] = service
	}
	for _, declared := range file.Decls {
		in := ""
		if function, ok := declared.(*ast.FuncDecl); ok {
			in = function.Name.Name
		}
		ast.Inspect(declared, func(node ast.Node) bool {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			name, ok := selector.X.(*ast.Ident)
			operation, isInput := strings.CutSuffix(selector.Sel.Name, "Input")
			if ok && isInput && services[name.Name] != "" {
				operations = append(operations, in+" "+services[name.Name]+"."+operation)
			}
			return true
		})
	}
	return operations
}

func TestCallsOfFindsThem(t *testing.T) {
	const text = `package a
		import ("github.com/aws/aws-sdk-go-v2/service/sqs"; db "github.com/aws/aws-sdk-go-v2/service/dynamodb"; "example.org/sns")
		var a = sqs.NewSendMessageInput; var b = client.Do(&sqs.PurgeQueueInput{}); var c = &sns.PublishInput{}
		func d() { in := &db.QueryInput{}; db.NewQueryPaginator(client, in) }`
	file, err := parser.ParseFile(token.NewFileSet(), "a.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	// The first one is no type. callsOf takes it for one, which errs on the safe side.
	want := []string{" sqs.NewSendMessage", " sqs.PurgeQueue", "d dynamodb.Query"}
	if got := callsOf(file); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestTableHasEveryCall compares the table with the files of both binaries, without those
// of other modules and of tests.
func TestTableHasEveryCall(t *testing.T) {
	const module = "github.com/limitgate/limitgate"
	list := exec.Command("go", "list", "-buildvcs=false", "-deps",
		"-f", `{{if .Module}}{{if eq .Module.Path "`+module+`"}}{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`, "./cmd/limitgate", "./cmd/limitgate-lambda")
	list.Dir = filepath.Join("..", "..")
	var complaints strings.Builder
	list.Stderr = &complaints
	output, err := list.Output()
	if err != nil {
		t.Fatalf("list files: %v\n%s", err, &complaints)
	}
	root, err := filepath.Abs(list.Dir)
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{}
	for _, name := range strings.Fields(string(output)) {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		within, err := filepath.Rel(root, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, operation := range callsOf(file) {
			made[filepath.ToSlash(within)+" "+operation] = true
		}
	}
	for _, c := range calls {
		if !made[c.String()] {
			t.Errorf("the table has %s, which is no call", c)
		}
		if (c.unallowed == "") == (len(c.policies) == 0) {
			t.Errorf("%s: want either policies or unallowed", c)
		}
	}
	for at := range made {
		if !slices.ContainsFunc(calls, func(c call) bool { return c.String() == at }) {
			t.Errorf("the table does not have %s: add a row with its policies, and allow it in %s", at, templateFiles[0])
		}
	}
}
