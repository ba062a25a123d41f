package cloudformation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// kept is what the template must say for nothing to be lost or read by strangers: paths
// below Resources, and values as JSON.
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
}

// denied is what the policy of the bucket denies everybody, by statement.
var denied = map[string]string{
	"OnlyByTLS":                 `{"Action":"s3:*","Condition":{"Bool":{"aws:SecureTransport":"false"}},"Resource":["${AuditBucket.Arn}","${AuditBucket.Arn}/*"]}`,
	"NothingIsDeleted":          `{"Action":["s3:DeleteObject","s3:DeleteObjectVersion","s3:PutObjectRetention","s3:PutObjectLegalHold","s3:BypassGovernanceRetention"],"Resource":"${AuditBucket.Arn}/*"}`,
	"NothingIsOverwritten":      `{"Action":"s3:PutObject","Condition":{"Bool":{"s3:ObjectCreationOperation":"true"},"Null":{"s3:if-none-match":"true"}},"Resource":"${AuditBucket.Arn}/*"}`,
	"OnlyTheControlPlaneWrites": `{"Action":"s3:PutObject","Condition":{"ArnNotEquals":{"aws:PrincipalArn":"${ControlPlaneRoleArn}"}},"Resource":"${AuditBucket.Arn}/*"}`,
}

// checkKept returns what of it the template does not say.
func checkKept(t template) (problems []string) {
	for path, want := range kept {
		value := at(t, append([]string{"Resources"}, strings.Split(path, "/")...)...)
		if got := asJSON(value); got != want {
			problems = append(problems, fmt.Sprintf("%s is %s, not %s", path, got, want))
		}
	}
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

func asJSON(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestWhatIsWrittenIsKept(t *testing.T) {
	parsed, err := parseTemplate(readTemplate(t))
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
		"allowed, not denied":    {"Sid: OnlyByTLS\n            Effect: Deny", "Sid: OnlyByTLS\n            Effect: Allow", []string{`statement "OnlyByTLS" of the bucket's policy does not deny`}},
		"another name":           {"Sid: NothingIsOverwritten", "Sid: Something", []string{`statement "NothingIsOverwritten" of the bucket's policy is missing`, `statement "Something" of the bucket's policy denies`}},
		"tombstones for ever":    {"AttributeName: expires_at", "AttributeName: expires", []string{"LimitsTable/Properties/TimeToLive"}},
		"a retention of its own": {"Days: !Ref AuditRetentionDays", "Days: 1", []string{"AuditBucket/Properties/ObjectLockConfiguration is"}},
	} {
		t.Run(name, func(t *testing.T) { reported(t, test.old, test.new, test.want, checkKept) })
	}
}
