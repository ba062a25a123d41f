package cloudformation

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// grant is one action that a policy allows.
type grant struct{ policy, action, resource, condition string }

func (g grant) String() string {
	text := g.policy + ": " + g.action + " on " + g.resource
	if g.condition != "" {
		text += " if " + g.condition
	}
	return text
}

// needed returns the grants that the calls need.
func needed(calls []call) map[grant]bool {
	grants := map[grant]bool{}
	for _, c := range calls {
		for _, policy := range c.policies {
			for _, action := range c.actions {
				for _, resource := range append([]string{c.resource}, c.also...) {
					grants[grant{policy, action, resource, c.condition}] = true
				}
			}
		}
	}
	return grants
}

// statementsOf returns the statements of the managed policies of a template, and of those in
// its roles, by the names of their resources.
func statementsOf(t template) map[string][]any {
	statements := map[string][]any{}
	for _, policy := range t.resources("AWS::IAM::ManagedPolicy") {
		statements[policy], _ = at(t, "Resources", policy, "Properties", "PolicyDocument", "Statement").([]any)
	}
	for _, role := range t.resources("AWS::IAM::Role") {
		policies, _ := at(t, "Resources", role, "Properties", "Policies").([]any)
		for _, policy := range policies {
			found, _ := at(policy, "PolicyDocument", "Statement").([]any)
			statements[role] = append(statements[role], found...)
		}
	}
	return statements
}

// granted returns the grants of the policies of a template, and problems with their
// statements.
func granted(t template) (grants map[grant]bool, problems []string) {
	grants = map[grant]bool{}
	for policy, statements := range statementsOf(t) {
		if len(statements) == 0 {
			problems = append(problems, policy+" has no statements")
		}
		for i, statement := range statements {
			found, err := grantsOf(policy, statement)
			if err != nil {
				problems = append(problems, fmt.Sprintf("%s, statement %d: %v", policy, i+1, err))
			}
			for _, g := range found {
				grants[g] = true
			}
		}
	}
	return grants, problems
}

// grantsOf returns the grants of a statement.
func grantsOf(policy string, value any) (grants []grant, err error) {
	statement, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%v is no statement", value)
	}
	for key := range statement {
		if !slices.Contains([]string{"Sid", "Effect", "Action", "Resource", "Condition"}, key) {
			return nil, fmt.Errorf("%s is not understood", key)
		}
	}
	if statement["Effect"] != "Allow" {
		return nil, fmt.Errorf("effect %v is not understood", statement["Effect"])
	}
	actions, err := textsOf(statement["Action"])
	if err != nil {
		return nil, fmt.Errorf("action: %w", err)
	}
	resources, err := textsOf(statement["Resource"])
	if err != nil {
		return nil, fmt.Errorf("resource: %w", err)
	}
	condition := ""
	if statement["Condition"] != nil {
		text, err := json.Marshal(statement["Condition"])
		if err != nil {
			return nil, fmt.Errorf("condition: %w", err)
		}
		condition = string(text)
	}
	for _, action := range actions {
		for _, resource := range resources {
			grants = append(grants, grant{policy, action, resource, condition})
		}
	}
	return grants, nil
}

// wildResources are the resources with an intended *, whose names are created at run
// time. In IAM a * also matches slashes.
var wildResources = map[string]string{
	queues:    "proxies name their queues by chance",
	objects:   "an object for each change",
	oneTenant: "an object for each change",

	deployments: "AppConfig numbers them",
	versions:    "AppConfig numbers them",
	// AWS accepts no other resource for ListStreams, which only reads.
	streams:      "streams of one table",
	cellsStreams: "streams of one table",
}

// checkPolicies returns problems with the policies of a template.
func checkPolicies(t template, calls []call) []string {
	grants, problems := granted(t)
	need := needed(calls)
	for g := range grants {
		switch {
		case strings.ContainsAny(g.action, "*?"):
			problems = append(problems, fmt.Sprintf("%s allows %s: name each action", g.policy, g.action))
		case strings.ContainsAny(g.resource, "*?") && wildResources[g.resource] == "":
			problems = append(problems, fmt.Sprintf("%s allows %s on %s: name the resource", g.policy, g.action, g.resource))
		case !need[g]:
			problems = append(problems, fmt.Sprintf("nothing needs %s", g))
		}
	}
	for g := range need {
		if !grants[g] {
			problems = append(problems, fmt.Sprintf("missing is %s", g))
		}
	}
	slices.Sort(problems)
	return problems
}

func TestPoliciesAllowWhatTheCodeCallsAndNothingElse(t *testing.T) {
	parsed, err := parseTemplates(readTemplates(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range checkPolicies(parsed, allCalls()) {
		t.Error(problem)
	}
}

// TestCheckPoliciesReportsWhatIsWrong changes the real template.
func TestCheckPoliciesReportsWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		old, new string // new replaces the first old
		want     []string
	}{
		"any action of a service": {"sqs:DeleteQueue", "sqs:*", []string{
			"ProxyPolicy allows sqs:*: name each action", "missing is ProxyPolicy: sqs:DeleteQueue on " + queues,
		}},
		"any action that begins so": {"Action: dynamodb:UpdateItem\n            Resource: !GetAtt LeasesTable.Arn", "Action: dynamodb:Update*\n            Resource: !GetAtt LeasesTable.Arn", []string{
			"ControlPlanePolicy allows dynamodb:Update*: name each action", "missing is ControlPlanePolicy: dynamodb:UpdateItem on ${LeasesTable.Arn}",
		}},
		"any action": {"Action: sns:Publish", "Action: '*'", []string{
			"ControlPlanePolicy allows *: name each action", "missing is ControlPlanePolicy: sns:Publish on ${UpdatesTopic}",
		}},
		"any resource": {"Action: dynamodb:UpdateItem\n            Resource: !GetAtt LeasesTable.Arn", "Action: dynamodb:UpdateItem\n            Resource: '*'", []string{
			"ControlPlanePolicy allows dynamodb:UpdateItem on *: name the resource", "missing is ControlPlanePolicy: dynamodb:UpdateItem on ${LeasesTable.Arn}",
		}},
		"any resource beside the right one": {"Action: sns:Publish\n            Resource: !Ref UpdatesTopic", "Action: sns:Publish\n            Resource: [!Ref UpdatesTopic, '*']", []string{
			"ControlPlanePolicy allows sns:Publish on *: name the resource",
		}},
		"any object of any bucket": {"Action: s3:PutObject\n            Resource: !Sub '${AuditBucket.Arn}/*'\n          - Sid: Bury", "Action: s3:PutObject\n            Resource: !Sub 'arn:${AWS::Partition}:s3:::*/*'\n          - Sid: Bury", []string{
			"ControlPlanePolicy allows s3:PutObject on arn:${AWS::Partition}:s3:::*/*: name the resource", "missing is ControlPlanePolicy: s3:PutObject on ${AuditBucket.Arn}/*",
		}},
		"the wrong table": {"Action: dynamodb:UpdateItem\n            Resource: !GetAtt LeasesTable.Arn", "Action: dynamodb:UpdateItem\n            Resource: !GetAtt LimitsTable.Arn", []string{
			"missing is ControlPlanePolicy: dynamodb:UpdateItem on ${LeasesTable.Arn}", "nothing needs ControlPlanePolicy: dynamodb:UpdateItem on ${LimitsTable.Arn}",
		}},
		"an uncalled action": {"[dynamodb:DescribeTable, dynamodb:Scan,", "[dynamodb:DescribeTable, dynamodb:DeleteItem, dynamodb:Scan,", []string{
			"nothing needs ControlPlanePolicy: dynamodb:DeleteItem on ${LimitsTable.Arn}",
		}},
		"an action of somebody else": {"Action: [dynamodb:Scan, dynamodb:GetItem]\n", "Action: [dynamodb:Scan, dynamodb:GetItem, dynamodb:PutItem]\n", []string{
			"nothing needs ProxyPolicy: dynamodb:PutItem on ${LimitsTable.Arn}",
		}},
		"an action too few": {"[sqs:CreateQueue, sqs:TagQueue]", "sqs:CreateQueue", []string{
			"missing is ProxyPolicy: sqs:TagQueue on " + queues,
		}},
		"no condition": {"            Condition:\n              StringEquals: {s3:prefix: !Sub 'TENANT%23${OperatorTenant}/'}\n", "", []string{
			"missing is TenantOperatorPolicy: s3:ListBucket on ${AuditBucket.Arn} if " + listOfOne, "nothing needs TenantOperatorPolicy: s3:ListBucket on ${AuditBucket.Arn}",
		}},
		"a looser condition": {"TENANT#${OperatorTenant}']\n              'Null': {dynamodb:LeadingKeys: 'false'}\n", "TENANT#${OperatorTenant}']\n", []string{
			"missing is TenantOperatorPolicy: dynamodb:GetItem", "missing is TenantOperatorPolicy: dynamodb:PutItem",
			"nothing needs TenantOperatorPolicy: dynamodb:GetItem", "nothing needs TenantOperatorPolicy: dynamodb:PutItem",
		}},
		"all but": {"            Action: sns:Publish\n", "            NotAction: sns:Publish\n", []string{
			"ControlPlanePolicy, statement 5: NotAction is not understood", "missing is ControlPlanePolicy: sns:Publish",
		}},
		"queues of other topics": {"            Condition:\n              StringEquals: {aws:ResourceTag/topic: !Ref UpdatesTopic}\n", "", []string{
			"missing is ProxyPolicy: sqs:DeleteMessage", "missing is ProxyPolicy: sqs:DeleteQueue", "missing is ProxyPolicy: sqs:GetQueueAttributes",
			"missing is ProxyPolicy: sqs:ReceiveMessage", "missing is ProxyPolicy: sqs:SetQueueAttributes",
			"nothing needs ProxyPolicy: sqs:DeleteMessage", "nothing needs ProxyPolicy: sqs:DeleteQueue", "nothing needs ProxyPolicy: sqs:GetQueueAttributes",
			"nothing needs ProxyPolicy: sqs:ReceiveMessage", "nothing needs ProxyPolicy: sqs:SetQueueAttributes",
		}},
		"queues of others tagged as its own": {"              StringEqualsIfExists: {aws:ResourceTag/topic: !Ref UpdatesTopic}\n", "", []string{
			"missing is ProxyPolicy: sqs:CreateQueue", "missing is ProxyPolicy: sqs:TagQueue", "nothing needs ProxyPolicy: sqs:CreateQueue", "nothing needs ProxyPolicy: sqs:TagQueue",
		}},
		"any cell's item": {"dynamodb:LeadingKeys: ['REPORT#*', 'VETO#*']", "dynamodb:LeadingKeys: ['*']", []string{
			"missing is ProxyPolicy: dynamodb:PutItem on ${CellsTable.Arn} if " + reportsVetoes, "nothing needs ProxyPolicy: dynamodb:PutItem on ${CellsTable.Arn} if " + keysLike("*"),
		}},
		"cells that write limits": {"dynamodb:LeadingKeys: [CELLS, 'REVISION#*']", "dynamodb:LeadingKeys: [CELLS, SHARED, 'REVISION#*']", []string{
			"missing is CellsFunctionPolicy: dynamodb:GetItem", "missing is CellsFunctionPolicy: dynamodb:PutItem",
			"nothing needs CellsFunctionPolicy: dynamodb:GetItem", "nothing needs CellsFunctionPolicy: dynamodb:PutItem",
		}},
		"an operator that says which cells share": {"dynamodb:LeadingKeys: [SHARED, 'PLAN#*', 'TENANT#*']", "dynamodb:LeadingKeys: [SHARED, CELLS, 'PLAN#*', 'TENANT#*']", []string{
			"missing is OperatorPolicy: dynamodb:PutItem", "nothing needs OperatorPolicy: dynamodb:PutItem",
		}},
		"a rollout that changes tenants": {"dynamodb:LeadingKeys: [SHARED, 'PLAN#*', 'REVISION#*']", "dynamodb:LeadingKeys: [SHARED, 'PLAN#*', 'TENANT#*', 'REVISION#*']", []string{
			"missing is RolloutOperatorPolicy: dynamodb:PutItem", "nothing needs RolloutOperatorPolicy: dynamodb:PutItem",
		}},
		"an audit that tells proxies": {"Description: limitgate-lambda as audit\n      PolicyDocument:\n        Version: '2012-10-17'\n        Statement:\n", "Description: limitgate-lambda as audit\n      PolicyDocument:\n        Version: '2012-10-17'\n        Statement:\n          - {Effect: Allow, Action: sns:Publish, Resource: !Ref UpdatesTopic}\n", []string{
			"nothing needs AuditFunctionPolicy: sns:Publish on ${UpdatesTopic}",
		}},
		"any gate": {"application/${GateApplication}/environment/${GateEnvironment}/deployment/*'", "application/*'", []string{
			"ControlPlanePolicy allows appconfig:CreateHostedConfigurationVersion on " + inAppConfig + "application/*: name the resource", "ControlPlanePolicy allows appconfig:GetDeployment on",
			"ControlPlanePolicy allows appconfig:ListDeployments on", "ControlPlanePolicy allows appconfig:StartDeployment on", "ControlPlanePolicy allows appconfig:StopDeployment on",
			"missing is ControlPlanePolicy: appconfig:CreateHostedConfigurationVersion", "missing is ControlPlanePolicy: appconfig:GetDeployment", "missing is ControlPlanePolicy: appconfig:ListDeployments",
			"missing is ControlPlanePolicy: appconfig:StartDeployment", "missing is ControlPlanePolicy: appconfig:StopDeployment",
		}},
		"any gate is turned": {"Action: [appconfig:StartConfigurationSession, appconfig:GetLatestConfiguration]", "Action: 'appconfig:*'", []string{
			"ProxyPolicy allows appconfig:*: name each action", "missing is ProxyPolicy: appconfig:GetLatestConfiguration", "missing is ProxyPolicy: appconfig:StartConfigurationSession",
		}},
		"a role with more than its function needs": {"Action: [logs:CreateLogStream, logs:PutLogEvents]", "Action: [logs:CreateLogStream, logs:PutLogEvents, logs:DeleteLogStream]", []string{
			"nothing needs RelayRole: logs:DeleteLogStream on ${RelayLogGroup.Arn}",
		}},
		"a role that logs anywhere": {"Resource: !GetAtt RelayLogGroup.Arn", "Resource: '*'", []string{
			"RelayRole allows logs:CreateLogStream on *: name the resource", "RelayRole allows logs:PutLogEvents on *: name the resource",
			"missing is RelayRole: logs:CreateLogStream", "missing is RelayRole: logs:PutLogEvents",
		}},
		"an unknown policy": {"  AuditorPolicy:\n", "  VisitorPolicy:\n", []string{
			"missing is AuditorPolicy: s3:GetObject", "missing is AuditorPolicy: s3:ListBucket", "nothing needs VisitorPolicy: s3:GetObject", "nothing needs VisitorPolicy: s3:ListBucket",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			reported(t, test.old, test.new, test.want, func(changed template) []string { return checkPolicies(changed, allCalls()) })
		})
	}
}

// reported changes the first template that contains from, and compares the beginnings of
// the problems that a check reports.
func reported(t *testing.T, from, to string, want []string, check func(template) []string) {
	t.Helper()
	texts := readTemplates(t)
	in := slices.IndexFunc(texts, func(text string) bool { return strings.Contains(text, from) })
	if in < 0 {
		t.Fatalf("no template has %q any more", from)
	}
	texts[in] = strings.Replace(texts[in], from, to, 1)
	changed, err := parseTemplates(texts)
	if err != nil {
		t.Fatal(err)
	}
	got := check(changed)
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestQueuesAreNamedAsInTheCode compares the one name of the policies that is not the
// template's own, and the tag.
func TestQueuesAreNamedAsInTheCode(t *testing.T) {
	source, err := os.ReadFile(filepath.Join("..", "..", "controlplane", "dynamo", "queue.go"))
	if err != nil {
		t.Fatal(err)
	}
	prefix := strings.TrimSuffix(queues[strings.LastIndex(queues, ":")+1:], "*")
	if !strings.Contains(string(source), fmt.Sprintf("queuePrefix = %q", prefix)) {
		t.Errorf("the policies are of queues that begin with %s, those of dynamo/queue.go do not", prefix)
	}
	if !regexp.MustCompile(`tags = map\[string\]string\{.*tagTopic: topic`).Match(source) || !strings.Contains(string(source), `tagTopic = "topic"`) || strings.Count(string(source), "Tags: q.tags") != 2 {
		t.Error("the policies are of queues that are tagged with their topic, those of dynamo/queue.go are not")
	}
	for _, resource := range slices.Sorted(maps.Keys(wildResources)) {
		if !slices.ContainsFunc(allCalls(), func(c call) bool { return c.resource == resource || slices.Contains(c.also, resource) }) {
			t.Errorf("no call needs the wild %s", resource)
		}
	}
}
