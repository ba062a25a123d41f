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

// call is what one function of the code asks of AWS, and who may do it.
type call struct {
	file, function, operation string // the operation as the SDK names it
	// actions are what IAM calls it; none for what needs no permission.
	actions  []string
	policies []string
	resource string
	// also are other resources for which the same call asks.
	also []string
	// condition is that of the statement, as JSON.
	condition string
	// nobody says why no policy allows it.
	nobody string
}

func (c call) String() string { return c.file + " " + c.function + " " + c.operation }

// What the policies are for. Who calls what cannot be read from the code, since calls go
// through interfaces: these columns are kept by hand. That the table has every function that
// calls AWS, and no other, is tested; that somebody new calls one of them is not.
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
)

// byAPerson is why no policy allows the checks of limitgate aws-check.
const byAPerson = "a person checks an account with credentials that may do all of it"

// servicePath is what the import path of the client of each service begins with.
const servicePath = "github.com/aws/aws-sdk-go-v2/service/"

// callsOf returns what a file asks of AWS, and in which function: every request of the SDK is
// an Input of its operation, also where a paginator or a waiter sends it.
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
	// The first one is no type; it is taken for one, which errs on the safe side.
	want := []string{" sqs.NewSendMessage", " sqs.PurgeQueue", "d dynamodb.Query"}
	if got := callsOf(file); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestTableHasEveryCall holds the table to the files of both binaries, without those of other
// modules and of tests.
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
		if (c.nobody == "") == (len(c.policies) == 0) {
			t.Errorf("%s: say who may, or why nobody", c)
		}
	}
	for at := range made {
		if !slices.ContainsFunc(calls, func(c call) bool { return c.String() == at }) {
			t.Errorf("the table does not have %s: say who may call it, and allow it in %s", at, templateFiles[0])
		}
	}
}
