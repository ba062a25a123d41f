package cloudformation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// kept are the properties of the template that protect data from loss and from foreign
// readers: paths below Resources, and values as JSON.
var kept = map[string]string{
	"LimitsTable/DeletionPolicy":                                                         `"Retain"`,
	"LimitsTable/UpdateReplacePolicy":                                                    `"Retain"`,
	"LimitsTable/Properties/DeletionProtectionEnabled":                                   `true`,
	"LimitsTable/Properties/BillingMode":                                                 `"PAY_PER_REQUEST"`,
	"LimitsTable/Properties/KeySchema":                                                   `[{"AttributeName":"pk","KeyType":"HASH"}]`,
	"LimitsTable/Properties/StreamSpecification/StreamViewType":                          `"NEW_AND_OLD_IMAGES"`,
	"LimitsTable/Properties/PointInTimeRecoverySpecification/PointInTimeRecoveryEnabled": `true`,
	"LimitsTable/Properties/SSESpecification/SSEEnabled":                                 `true`,
	"LimitsTable/Properties/TimeToLiveSpecification":                                     `{"AttributeName":"expires_at","Enabled":true}`,
	"LeasesTable/Properties/KeySchema":                                                   `[{"AttributeName":"pk","KeyType":"HASH"}]`,
	"LeasesTable/Properties/SSESpecification/SSEEnabled":                                 `true`,
	"UpdatesTopic/Properties/KmsMasterKeyId":                                             `"alias/aws/sns"`,
	"AuditBucket/DeletionPolicy":                                                         `"Retain"`,
	"AuditBucket/UpdateReplacePolicy":                                                    `"Retain"`,
	"AuditBucket/Properties/ObjectLockEnabled":                                           `true`,
	"AuditBucket/Properties/ObjectLockConfiguration":                                     `{"ObjectLockEnabled":"Enabled","Rule":{"DefaultRetention":{"Days":"${AuditRetentionDays}","Mode":"COMPLIANCE"}}}`,
	"AuditBucket/Properties/VersioningConfiguration":                                     `{"Status":"Enabled"}`,
	"AuditBucket/Properties/BucketEncryption":                                            `{"ServerSideEncryptionConfiguration":[{"ServerSideEncryptionByDefault":{"SSEAlgorithm":"AES256"}}]}`,
	"AuditBucket/Properties/PublicAccessBlockConfiguration":                              `{"BlockPublicAcls":true,"BlockPublicPolicy":true,"IgnorePublicAcls":true,"RestrictPublicBuckets":true}`,
	"AuditBucketPolicy/DeletionPolicy":                                                   `"Retain"`,
	"AuditBucketPolicy/Properties/Bucket":                                                `"${AuditBucket}"`,

	"CellsTable/DeletionPolicy":                                                         `"Retain"`,
	"CellsTable/UpdateReplacePolicy":                                                    `"Retain"`,
	"CellsTable/Properties/DeletionProtectionEnabled":                                   `true`,
	"CellsTable/Properties/BillingMode":                                                 `"PAY_PER_REQUEST"`,
	"CellsTable/Properties/KeySchema":                                                   `[{"AttributeName":"pk","KeyType":"HASH"}]`,
	"CellsTable/Properties/StreamSpecification/StreamViewType":                          `"NEW_AND_OLD_IMAGES"`,
	"CellsTable/Properties/PointInTimeRecoverySpecification/PointInTimeRecoveryEnabled": `true`,
	"CellsTable/Properties/SSESpecification/SSEEnabled":                                 `true`,

	"DeadLetterQueue/Properties/SqsManagedSseEnabled":            `true`,
	"DeadLetterQueue/Properties/MessageRetentionPeriod":          `1209600`,
	"DeadLetterQueuePolicy/Properties/Queues":                    `["${DeadLetterQueue}"]`,
	"DeadLetterQueuePolicy/Properties/PolicyDocument/Statement":  `[{"Action":"sqs:*","Condition":{"Bool":{"aws:SecureTransport":"false"}},"Effect":"Deny","Principal":"*","Resource":"${DeadLetterQueue.Arn}","Sid":"OnlyByTLS"}]`,
	"FailedBatchQueue/Properties/SqsManagedSseEnabled":           `true`,
	"FailedBatchQueue/Properties/MessageRetentionPeriod":         `1209600`,
	"FailedBatchQueuePolicy/Properties/Queues":                   `["${FailedBatchQueue}"]`,
	"FailedBatchQueuePolicy/Properties/PolicyDocument/Statement": `[{"Action":"sqs:*","Condition":{"Bool":{"aws:SecureTransport":"false"}},"Effect":"Deny","Principal":"*","Resource":"${FailedBatchQueue.Arn}","Sid":"OnlyByTLS"}]`,

	// A policy with another description is another policy: roles keep the old one.
	"ProxyPolicy/Properties/Description":           `"limitgate serve with limits of a table, --updates-topic, --cell and --rollout-gate"`,
	"ControlPlanePolicy/Properties/Description":    `"limitgate controlplane with --audit-bucket, --cells, --rollout-gate and --dead-letters"`,
	"RelayFunctionPolicy/Properties/Description":   `"limitgate-lambda as relay"`,
	"AuditFunctionPolicy/Properties/Description":   `"limitgate-lambda as audit"`,
	"CellsFunctionPolicy/Properties/Description":   `"limitgate-lambda as cells"`,
	"OperatorPolicy/Properties/Description":        `"limitgate limits, limitgate cells, and limitgate audit"`,
	"TenantOperatorPolicy/Properties/Description":  `"limitgate limits and limitgate audit, but writing the limits of one tenant alone and reading only its history"`,
	"AuditorPolicy/Properties/Description":         `"limitgate audit, and nothing else"`,
	"RolloutOperatorPolicy/Properties/Description": `"limitgate rollout"`,

	"GateApplication/DeletionPolicy":                      `"Retain"`,
	"GateEnvironment/DeletionPolicy":                      `"Retain"`,
	"GateEnvironment/Properties/Monitors":                 `null`,
	"GateProfile/DeletionPolicy":                          `"Retain"`,
	"GateStrategy/Properties/DeploymentDurationInMinutes": `0`,
	"GateStrategy/Properties/FinalBakeTimeInMinutes":      `0`,
	"GateStrategy/Properties/GrowthFactor":                `100`,

	"TrailBucket/DeletionPolicy":                              `"Retain"`,
	"TrailBucket/Properties/VersioningConfiguration":          `{"Status":"Enabled"}`,
	"TrailBucket/Properties/PublicAccessBlockConfiguration":   `{"BlockPublicAcls":true,"BlockPublicPolicy":true,"IgnorePublicAcls":true,"RestrictPublicBuckets":true}`,
	"TrailBucketPolicy/Properties/Bucket":                     `"${TrailBucket}"`,
	"TrailBucketPolicy/Properties/PolicyDocument/Statement/0": `{"Action":"s3:*","Condition":{"Bool":{"aws:SecureTransport":"false"}},"Effect":"Deny","Principal":"*","Resource":["${TrailBucket.Arn}","${TrailBucket.Arn}/*"],"Sid":"OnlyByTLS"}`,
	"TrailBucketPolicy/Properties/PolicyDocument/Statement/1": `{"Action":"s3:GetBucketAcl","Condition":{"StringEquals":{"aws:SourceArn":"` + theTrail + `"}},"Effect":"Allow","Principal":{"Service":"cloudtrail.amazonaws.com"},"Resource":"${TrailBucket.Arn}","Sid":"TrailLooks"}`,
	"TrailBucketPolicy/Properties/PolicyDocument/Statement/2": `{"Action":"s3:PutObject","Condition":{"StringEquals":{"aws:SourceArn":"` + theTrail + `","s3:x-amz-acl":"bucket-owner-full-control"}},"Effect":"Allow","Principal":{"Service":"cloudtrail.amazonaws.com"},"Resource":"${TrailBucket.Arn}/AWSLogs/${AWS::AccountId}/*","Sid":"TrailWrites"}`,
	"TrailBucketPolicy/Properties/PolicyDocument/Statement/3": `null`,
	"Trail/Properties/IsLogging":                              `true`,
	"Trail/Properties/EnableLogFileValidation":                `true`,
	"Trail/Properties/AdvancedEventSelectors/0":               dataEvents("limits", "AWS::DynamoDB::Table", `"Equals":["${LimitsTable.Arn}"],"Field":"resources.ARN"`),
	"Trail/Properties/AdvancedEventSelectors/1":               dataEvents("audit", "AWS::S3::Object", `"Field":"resources.ARN","StartsWith":["${AuditBucket.Arn}/"]`),
	"Trail/Properties/AdvancedEventSelectors/2/Fn::If/0":      `"OnLambda"`,
	"Trail/Properties/AdvancedEventSelectors/2/Fn::If/1":      dataEvents("functions", "AWS::Lambda::Function", `"Equals":["${RelayFunction.Arn}","${AuditFunction.Arn}","${CellsFunction.Arn}"],"Field":"resources.ARN"`),
}

// theTrail is the ARN of the trail, which its bucket needs before the trail exists.
const theTrail = "arn:${AWS::Partition}:cloudtrail:${AWS::Region}:${AWS::AccountId}:trail/${AWS::StackName}"

// dataEvents is the selector of a trail for the uses of resources of a type.
func dataEvents(name, kind, which string) string {
	return `{"FieldSelectors":[{"Equals":["Data"],"Field":"eventCategory"},{"Equals":["` + kind + `"],"Field":"resources.type"},{` + which + `}],"Name":"` + name + `"}`
}

// denied are the statements of the bucket's policy that deny all principals.
var denied = map[string]string{
	"OnlyByTLS":                 `{"Action":"s3:*","Condition":{"Bool":{"aws:SecureTransport":"false"}},"Resource":["${AuditBucket.Arn}","${AuditBucket.Arn}/*"]}`,
	"NothingIsDeleted":          `{"Action":["s3:DeleteObject","s3:DeleteObjectVersion","s3:PutObjectRetention","s3:PutObjectLegalHold","s3:BypassGovernanceRetention"],"Resource":"${AuditBucket.Arn}/*"}`,
	"NothingIsOverwritten":      `{"Action":"s3:PutObject","Condition":{"Bool":{"s3:ObjectCreationOperation":"true"},"Null":{"s3:if-none-match":"true"}},"Resource":"${AuditBucket.Arn}/*"}`,
	"OnlyTheControlPlaneWrites": `{"Action":"s3:PutObject","Condition":{"ArnNotEquals":{"aws:PrincipalArn":"${ControlPlaneRoleArn}"}},"Resource":"${AuditBucket.Arn}/*"}`,
}

// checkPaths returns the differences between a table of paths and values and the
// template, sorted.
func checkPaths(t template, table map[string]string) (problems []string) {
	for path, want := range table {
		value := at(t, append([]string{"Resources"}, strings.Split(path, "/")...)...)
		if got := asJSON(value); got != want {
			problems = append(problems, fmt.Sprintf("%s is %s, not %s", path, got, want))
		}
	}
	slices.Sort(problems)
	return problems
}

// checkKept returns the differences between kept and denied and the template.
func checkKept(t template) (problems []string) {
	problems = append(checkPaths(t, kept), checkResourcePolicies(t)...)
	statements, _ := at(t, "Resources", "AuditBucketPolicy", "Properties", "PolicyDocument", "Statement").([]any)
	there := map[string]bool{}
	for _, value := range statements {
		if branch, ok := at(value, "Fn::If").([]any); ok && asJSON(branch[2:]) == `["${AWS::NoValue}"]` {
			value = branch[1]
		}
		sid, _ := at(value, "Sid").(string)
		there[sid] = true
		if at(value, "Effect") != "Deny" || at(value, "Principal") != "*" {
			problems = append(problems, fmt.Sprintf("statement %q of the bucket's policy does not deny everybody", sid))
			continue
		}
		rest := map[string]any{}
		for _, key := range []string{"Action", "NotAction", "Resource", "NotResource", "Condition"} {
			if v := at(value, key); v != nil {
				rest[key] = v
			}
		}
		if got := asJSON(rest); got != denied[sid] {
			problems = append(problems, fmt.Sprintf("statement %q of the bucket's policy denies %s", sid, got))
		}
	}
	for sid := range denied {
		if !there[sid] {
			problems = append(problems, fmt.Sprintf("statement %q of the bucket's policy is missing", sid))
		}
	}
	slices.Sort(problems)
	return problems
}

// checkResourcePolicies returns the resources with policies that these tests do not check:
// such a policy may allow an action beyond those of a role.
func checkResourcePolicies(t template) (problems []string) {
	known := []string{"AuditBucketPolicy", "DeadLetterQueuePolicy", "FailedBatchQueuePolicy", "TrailBucketPolicy"}
	resources, _ := at(t, "Resources").(map[string]any)
	for name, resource := range resources {
		kind, _ := at(resource, "Type").(string)
		own := kind == "AWS::IAM::ManagedPolicy" || kind == "AWS::IAM::Role"
		if !own && strings.Contains(asJSON(resource), `"Statement"`) && !slices.Contains(known, name) {
			problems = append(problems, name+" is a policy of which nothing is known")
		}
	}
	return problems
}

func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestWhatIsWrittenIsKept(t *testing.T) {
	parsed, err := parseTemplates(readTemplates(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range checkKept(parsed) {
		t.Error(problem)
	}
}

func TestCheckKeptReportsWhatIsNot(t *testing.T) {
	for name, test := range map[string]struct {
		old, new string
		want     []string
	}{
		"a mode with a way out":  {"Mode: COMPLIANCE", "Mode: GOVERNANCE", []string{"AuditBucket/Properties/ObjectLockConfiguration is"}},
		"a table that goes":      {"DeletionPolicy: Retain", "DeletionPolicy: Delete", []string{"LimitsTable/DeletionPolicy is"}},
		"half a stream":          {"NEW_AND_OLD_IMAGES", "NEW_IMAGE", []string{"LimitsTable/Properties/StreamSpecification/StreamViewType is"}},
		"no recovery":            {"PointInTimeRecoveryEnabled: true", "PointInTimeRecoveryEnabled: false", []string{"LimitsTable/Properties/PointInTime"}},
		"a public bucket":        {"BlockPublicPolicy: true", "BlockPublicPolicy: false", []string{"AuditBucket/Properties/PublicAccess"}},
		"a topic in clear":       {"      KmsMasterKeyId: alias/aws/sns\n", "", []string{"UpdatesTopic/Properties/KmsMasterKeyId is null"}},
		"versions can go":        {"              - s3:DeleteObjectVersion\n", "", []string{`statement "NothingIsDeleted" of the bucket's policy denies`}},
		"allowed, not denied":    {"            Effect: Deny\n            Principal: '*'\n            Action: s3:*", "            Effect: Allow\n            Principal: '*'\n            Action: s3:*", []string{`statement "OnlyByTLS" of the bucket's policy does not deny`}},
		"another name":           {"Sid: NothingIsOverwritten", "Sid: Something", []string{`statement "NothingIsOverwritten" of the bucket's policy is missing`, `statement "Something" of the bucket's policy denies`}},
		"tombstones for ever":    {"AttributeName: expires_at", "AttributeName: expires", []string{"LimitsTable/Properties/TimeToLive"}},
		"cells that go":          {"    DeletionPolicy: Retain\n    UpdateReplacePolicy: Retain\n    Properties:\n      TableName: !Ref CellsTableName", "    Properties:\n      TableName: !Ref CellsTableName", []string{"CellsTable/DeletionPolicy is null", "CellsTable/UpdateReplacePolicy is null"}},
		"letters in clear":       {"      SqsManagedSseEnabled: true\n", "", []string{"DeadLetterQueue/Properties/SqsManagedSseEnabled is null"}},
		"letters for a day":      {"MessageRetentionPeriod: 1209600", "MessageRetentionPeriod: 86400", []string{"DeadLetterQueue/Properties/MessageRetentionPeriod is 86400"}},
		"letters without TLS":    {"            Action: sqs:*", "            Action: sqs:SendMessage", []string{"DeadLetterQueuePolicy/Properties/PolicyDocument/Statement is"}},
		"a gate that bakes":      {"FinalBakeTimeInMinutes: 0", "FinalBakeTimeInMinutes: 10", []string{"GateStrategy/Properties/FinalBakeTimeInMinutes is 10"}},
		"somebody else's trail":  {"                s3:x-amz-acl: bucket-owner-full-control\n", "", []string{"TrailBucketPolicy/Properties/PolicyDocument/Statement/2 is"}},
		"half a trail":           {"        - Name: audit\n", "        - Name: something\n", []string{"Trail/Properties/AdvancedEventSelectors/1 is"}},
		"anybody publishes":      {"  AuditBucket:\n", "  UpdatesTopicPolicy:\n    Type: AWS::SNS::TopicPolicy\n    Properties:\n      PolicyDocument: {Statement: [{Effect: Allow, Principal: '*', Action: sns:Publish, Resource: '*'}]}\n\n  AuditBucket:\n", []string{"UpdatesTopicPolicy is a policy of which nothing is known"}},
		"a retention of its own": {"Days: !Ref AuditRetentionDays", "Days: 1", []string{"AuditBucket/Properties/ObjectLockConfiguration is"}},
	} {
		t.Run(name, func(t *testing.T) { reported(t, test.old, test.new, test.want, checkKept) })
	}
}
