package cloudformation

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// store are the properties of both stores that keep counters, encrypt them and keep others away.
var store = map[string]string{
	"Store/DeletionPolicy":                               `"Snapshot"`,
	"Store/UpdateReplacePolicy":                          `"Snapshot"`,
	"Store/UpdatePolicy":                                 `{"UseOnlineResharding":true}`,
	"Store/Properties/ClusterMode":                       `"enabled"`,
	"Store/Properties/AutomaticFailoverEnabled":          `true`,
	"Store/Properties/MultiAZEnabled":                    `true`,
	"Store/Properties/TransitEncryptionEnabled":          `true`,
	"Store/Properties/TransitEncryptionMode":             `"required"`,
	"Store/Properties/AtRestEncryptionEnabled":           `true`,
	"Store/Properties/UserGroupIds":                      `["${StoreUserGroup}"]`,
	"Store/Properties/CacheParameterGroupName":           `"${StoreParameters}"`,
	"Store/Properties/CacheSubnetGroupName":              `"${StoreSubnets}"`,
	"Store/Properties/SecurityGroupIds":                  `["${StoreSecurityGroup}"]`,
	"StoreParameters/Properties/Properties":              `{"cluster-enabled":"yes","maxmemory-policy":"noeviction"}`,
	"StoreUserGroup/Properties/UserIds":                  `{"Fn::If":["IsRedis",["${DefaultUser}","${StoreUser}"],["${StoreUser}"]]}`,
	"StoreUser/Properties/UserId":                        `"${UserName}"`, // as IAM requires
	"StoreUser/Properties/UserName":                      `"${UserName}"`,
	"StoreUser/Properties/AuthenticationMode":            `{"Fn::If":["UsesIam",{"Type":"iam"},{"Passwords":["{{resolve:secretsmanager:${StoreSecret}:SecretString:password}}"],"Type":"password"}]}`,
	"DefaultUser/Properties/AccessString":                `"off ~lg:* -@all"`,
	"StoreRotation/Condition":                            `"Rotates"`,
	"StoreRotation/Properties/SecretId":                  `"${StoreSecret}"`,
	"StoreRotation/Properties/RotationRules":             `{"AutomaticallyAfterDays":"${RotationDays}"}`,
	"StoreSecurityGroup/Properties/SecurityGroupIngress": `[{"Description":"Proxies","FromPort":6379,"IpProtocol":"tcp","SourceSecurityGroupId":"${ProxySecurityGroupId}","ToPort":6379}]`,
	"StoreSecurityGroup/Properties/SecurityGroupEgress":  `[{"CidrIp":"127.0.0.1/32","Description":"Nothing","IpProtocol":"-1"}]`,

	"ServerlessStore/DeletionPolicy":                          `"Retain"`,
	"ServerlessStore/UpdateReplacePolicy":                     `"Retain"`,
	"ServerlessStore/Properties/CacheUsageLimits":             `null`, // at a limit keys are evicted
	"ServerlessStore/Properties/UserGroupId":                  `"${ServerlessUserGroup}"`,
	"ServerlessStore/Properties/SecurityGroupIds":             `["${ServerlessSecurityGroup}"]`,
	"ServerlessUser/Properties/UserId":                        `"${UserName}"`,
	"ServerlessUser/Properties/UserName":                      `"${UserName}"`,
	"ServerlessUser/Properties/AuthenticationMode":            `{"Type":"iam"}`,
	"ServerlessUserGroup/Properties/UserIds":                  `["${ServerlessUser}"]`,
	"ServerlessSecurityGroup/Properties/SecurityGroupIngress": `[{"Description":"Proxies","FromPort":6379,"IpProtocol":"tcp","SourceSecurityGroupId":"${ProxySecurityGroupId}","ToPort":6379}]`,
	"ServerlessSecurityGroup/Properties/SecurityGroupEgress":  `[{"CidrIp":"127.0.0.1/32","Description":"Nothing","IpProtocol":"-1"}]`,
}

// checkStore returns the differences between store and the template, and between the rights
// of its user and those of docs/redis-acl.md, which a test of cluster runs.
func checkStore(t template) []string {
	problems := checkPaths(t, store)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "redis-acl.md"))
	if err != nil {
		return append(problems, err.Error())
	}
	line := regexp.MustCompile(`(?m)^user limitgate on #\S+ (.*)$`).FindSubmatch(page)
	if line == nil {
		return append(problems, "docs/redis-acl.md has no user")
	}
	for _, user := range []string{"StoreUser", "ServerlessUser"} {
		if got := at(t, "Resources", user, "Properties", "AccessString"); got != "on "+string(line[1]) {
			problems = append(problems, fmt.Sprintf("%s has the rights %v, docs/redis-acl.md %s", user, got, line[1]))
		}
	}
	return problems
}

func TestStoreIsKeptAndClosed(t *testing.T) {
	parsed, err := parseTemplates(readTemplates(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range checkStore(parsed) {
		t.Error(problem)
	}
}

func TestCheckStoreReportsWhatIsNot(t *testing.T) {
	for name, test := range map[string]struct {
		old, new string
		want     []string
	}{
		"a right too many":      {" +zscore\n", " +zscore +flushall\n", []string{"StoreUser has the rights"}},
		"a right too few":       {" +zscore\n", "\n", []string{"StoreUser has the rights"}},
		"evictions":             {"maxmemory-policy: noeviction", "maxmemory-policy: volatile-lru", []string{"StoreParameters/Properties/Properties is"}},
		"shards that replace":   {"      UseOnlineResharding: true\n", "      UseOnlineResharding: false\n", []string{"Store/UpdatePolicy is"}},
		"plain connections":     {"TransitEncryptionMode: required", "TransitEncryptionMode: preferred", []string{"Store/Properties/TransitEncryptionMode is"}},
		"open to a network":     {"SourceSecurityGroupId: !Ref ProxySecurityGroupId", "CidrIp: 10.0.0.0/8", []string{"StoreSecurityGroup/Properties/SecurityGroupIngress is"}},
		"no failover":           {"AutomaticFailoverEnabled: true", "AutomaticFailoverEnabled: false", []string{"Store/Properties/AutomaticFailoverEnabled is"}},
		"a default user":        {"AccessString: off ~lg:* -@all", "AccessString: on ~* +@all", []string{"DefaultUser/Properties/AccessString is"}},
		"a password in clear":   {"Passwords: [!Sub '{{resolve:secretsmanager:${StoreSecret}:SecretString:password}}']", "Passwords: [a-password-in-the-template]", []string{"StoreUser/Properties/AuthenticationMode is"}},
		"a password that stays": {"        AutomaticallyAfterDays: !Ref RotationDays\n", "        AutomaticallyAfterDays: 1000\n", []string{"StoreRotation/Properties/RotationRules is"}},
	} {
		t.Run(name, func(t *testing.T) { reported(t, test.old, test.new, test.want, checkStore) })
	}
}

// makeStore makes a stack of the store in a network of the emulator, and reads back what the
// emulator creates of it: the security group and the policy. The emulator creates no secret, so
// it refuses a policy on one.
func makeStore(t *testing.T, cli awsCLI) {
	t.Helper()
	var network struct{ Vpcs []struct{ VpcID string } }
	cli.ask(t, &network, "ec2", "describe-vpcs")
	if len(network.Vpcs) == 0 {
		t.Fatal("the emulator has no network")
	}
	vpc := network.Vpcs[0].VpcID
	var proxies struct{ GroupID string }
	cli.ask(t, &proxies, "ec2", "create-security-group", "--group-name", "proxies", "--description", "proxies", "--vpc-id", vpc)
	createStack(t, cli, "limitgate-store", templateFiles[3], "VpcId="+vpc, "ProxySecurityGroupId="+proxies.GroupID, "SubnetIds=subnet-a", "Login=iam")
	// It cannot describe the outputs, because it creates no cluster either.
	var resources struct {
		StackResources []struct{ LogicalResourceID, PhysicalResourceID string }
	}
	cli.ask(t, &resources, "cloudformation", "describe-stack-resources", "--stack-name", "limitgate-store")
	made := map[string]string{}
	for _, r := range resources.StackResources {
		made[r.LogicalResourceID] = r.PhysicalResourceID
	}
	var described struct {
		SecurityGroups []struct {
			IPPermissions []struct {
				FromPort, ToPort int
				UserIDGroupPairs []struct{ GroupID string }
				IPRanges         []struct{ CidrIP string }
			}
		}
	}
	cli.ask(t, &described, "ec2", "describe-security-groups", "--group-ids", made["StoreSecurityGroup"])
	want := fmt.Sprintf("[{[{6379 6379 [{%s}] []}]}]", proxies.GroupID)
	if got := fmt.Sprint(described.SecurityGroups); got != want {
		t.Errorf("the security group is %s, want %s", got, want)
	}
	made[storeConnect+"Arn"] = made[storeConnect]
	comparePolicies(t, cli, made, storeConnect)
}
