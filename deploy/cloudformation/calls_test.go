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
	proxy          = "ProxyPolicy"
	controlPlane   = "ControlPlanePolicy"
	operator       = "OperatorPolicy"
	tenantOperator = "TenantOperatorPolicy"
	auditor        = "AuditorPolicy"
)

const (
	limitsTable = "${LimitsTable.Arn}"
	stream      = "${LimitsTable.StreamArn}"
	leasesTable = "${LeasesTable.Arn}"
	topic       = "${UpdatesTopic}"
	queues      = "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:limitgate-updates-*"
	bucket      = "${AuditBucket.Arn}"
	objects     = "${AuditBucket.Arn}/*"
	oneTenant   = "${AuditBucket.Arn}/TENANT%23${OperatorTenant}/*"
)

const (
	keyOfOneTenant = `{"ForAllValues:StringEquals":{"dynamodb:LeadingKeys":["TENANT#${OperatorTenant}"]},"Null":{"dynamodb:LeadingKeys":"false"}}`
	listOfOne      = `{"StringEquals":{"s3:prefix":"TENANT%23${OperatorTenant}/"}}`
	ownQueue       = `{"StringEquals":{"sns:Protocol":"sqs"},"StringLike":{"sns:Endpoint":"` + queues + `"}}`
)

// calls are all calls of the binary. Where the same call is allowed to different people in
// different ways it has more than one row.
var calls = []call{
	{file: "dynamo/table.go", function: "scan", operation: "dynamodb.Scan", actions: []string{"dynamodb:Scan"}, resource: limitsTable, policies: []string{proxy, controlPlane, operator, tenantOperator}},
	{file: "dynamo/table.go", function: "Get", operation: "dynamodb.GetItem", actions: []string{"dynamodb:GetItem"}, resource: limitsTable, policies: []string{operator}},
	{file: "dynamo/table.go", function: "Get", operation: "dynamodb.GetItem", actions: []string{"dynamodb:GetItem"}, resource: limitsTable, policies: []string{tenantOperator}, condition: keyOfOneTenant},
	{file: "dynamo/table.go", function: "Put", operation: "dynamodb.PutItem", actions: []string{"dynamodb:PutItem"}, resource: limitsTable, policies: []string{operator}},
	{file: "dynamo/table.go", function: "Put", operation: "dynamodb.PutItem", actions: []string{"dynamodb:PutItem"}, resource: limitsTable, policies: []string{tenantOperator}, condition: keyOfOneTenant},
	{file: "dynamo/table.go", function: "Restore", operation: "dynamodb.PutItem", actions: []string{"dynamodb:PutItem"}, resource: limitsTable, policies: []string{controlPlane}},
	{file: "dynamo/table.go", function: "put", operation: "dynamodb.PutItem", nobody: "sends what Put and Restore ask for"},
	{file: "dynamo/table.go", function: "Create", operation: "dynamodb.CreateTable", nobody: "the template makes the table, this is for tests and for trying out"},
	{file: "dynamo/table.go", function: "Create", operation: "dynamodb.DescribeTable", nobody: "waits for CreateTable"},

	{file: "dynamo/stream.go", function: "OpenStream", operation: "dynamodb.DescribeTable", actions: []string{"dynamodb:DescribeTable"}, resource: limitsTable, policies: []string{controlPlane}},
	{file: "dynamo/stream.go", function: "Shards", operation: "dynamodbstreams.DescribeStream", actions: []string{"dynamodb:DescribeStream"}, resource: stream, policies: []string{controlPlane}},
	{file: "dynamo/stream.go", function: "Start", operation: "dynamodbstreams.GetShardIterator", actions: []string{"dynamodb:GetShardIterator"}, resource: stream, policies: []string{controlPlane}},
	{file: "dynamo/stream.go", function: "Read", operation: "dynamodbstreams.GetRecords", actions: []string{"dynamodb:GetRecords"}, resource: stream, policies: []string{controlPlane}},
	{file: "dynamo/leases.go", function: "Take", operation: "dynamodb.UpdateItem", actions: []string{"dynamodb:UpdateItem"}, resource: leasesTable, policies: []string{controlPlane}},
	{file: "dynamo/leases.go", function: "Note", operation: "dynamodb.UpdateItem", actions: []string{"dynamodb:UpdateItem"}, resource: leasesTable, policies: []string{controlPlane}},
	{file: "dynamo/leases.go", function: "Release", operation: "dynamodb.UpdateItem", actions: []string{"dynamodb:UpdateItem"}, resource: leasesTable, policies: []string{controlPlane}},

	{file: "dynamo/topic.go", function: "Publish", operation: "sns.PublishBatch", actions: []string{"sns:Publish"}, resource: topic, policies: []string{controlPlane}},
	{file: "dynamo/queue.go", function: "subscribe", operation: "sns.Subscribe", actions: []string{"sns:Subscribe"}, resource: topic, policies: []string{proxy}, condition: ownQueue},
	{file: "dynamo/queue.go", function: "Close", operation: "sns.Unsubscribe", actions: []string{"sns:Unsubscribe"}, resource: topic, policies: []string{proxy}},
	// With tags.
	{file: "dynamo/queue.go", function: "Subscribe", operation: "sqs.CreateQueue", actions: []string{"sqs:CreateQueue", "sqs:TagQueue"}, resource: queues, policies: []string{proxy}},
	{file: "dynamo/queue.go", function: "subscribe", operation: "sqs.GetQueueAttributes", actions: []string{"sqs:GetQueueAttributes"}, resource: queues, policies: []string{proxy}},
	{file: "dynamo/queue.go", function: "subscribe", operation: "sqs.SetQueueAttributes", actions: []string{"sqs:SetQueueAttributes"}, resource: queues, policies: []string{proxy}},
	{file: "dynamo/queue.go", function: "Receive", operation: "sqs.ReceiveMessage", actions: []string{"sqs:ReceiveMessage"}, resource: queues, policies: []string{proxy}},
	{file: "dynamo/queue.go", function: "Receive", operation: "sqs.DeleteMessageBatch", actions: []string{"sqs:DeleteMessage"}, resource: queues, policies: []string{proxy}},
	{file: "dynamo/queue.go", function: "Close", operation: "sqs.DeleteQueue", actions: []string{"sqs:DeleteQueue"}, resource: queues, policies: []string{proxy}},

	{file: "audit/bucket.go", function: "Create", operation: "s3.PutObject", actions: []string{"s3:PutObject"}, resource: objects, policies: []string{controlPlane}},
	{file: "audit/bucket.go", function: "Read", operation: "s3.ListObjectsV2", actions: []string{"s3:ListBucket"}, resource: bucket, policies: []string{operator, auditor}},
	{file: "audit/bucket.go", function: "Read", operation: "s3.ListObjectsV2", actions: []string{"s3:ListBucket"}, resource: bucket, policies: []string{tenantOperator}, condition: listOfOne},
	{file: "audit/bucket.go", function: "read", operation: "s3.GetObject", actions: []string{"s3:GetObject"}, resource: objects, policies: []string{operator, auditor}},
	{file: "audit/bucket.go", function: "read", operation: "s3.GetObject", actions: []string{"s3:GetObject"}, resource: oneTenant, policies: []string{tenantOperator}},

	{file: "cmd/limitgate/limits_table.go", function: "caller", operation: "sts.GetCallerIdentity", nobody: "AWS tells everybody who they are"},
}

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

// TestTableHasEveryCall holds the table to the files of the binary, without those of other
// modules and of tests.
func TestTableHasEveryCall(t *testing.T) {
	const module = "github.com/limitgate/limitgate"
	list := exec.Command("go", "list", "-buildvcs=false", "-deps",
		"-f", `{{if .Module}}{{if eq .Module.Path "`+module+`"}}{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}{{end}}{{end}}`, "./cmd/limitgate")
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
			t.Errorf("the table does not have %s: say who may call it, and allow it in %s", at, templateFile)
		}
	}
}
