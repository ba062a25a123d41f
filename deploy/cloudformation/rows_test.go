package cloudformation

import "slices"

const (
	limitsTable  = "${LimitsTable.Arn}"
	stream       = "${LimitsTable.StreamArn}"
	streams      = "${LimitsTable.Arn}/stream/*"
	cellsTable   = "${CellsTable.Arn}"
	cellsStream  = "${CellsTable.StreamArn}"
	cellsStreams = "${CellsTable.Arn}/stream/*"
	leasesTable  = "${LeasesTable.Arn}"
	topic        = "${UpdatesTopic}"
	queues       = "arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:limitgate-updates-*"
	deadLetters  = "${DeadLetterQueue.Arn}"
	failed       = "${FailedBatchQueue.Arn}"
	bucket       = "${AuditBucket.Arn}"
	objects      = "${AuditBucket.Arn}/*"
	oneTenant    = "${AuditBucket.Arn}/TENANT%23${OperatorTenant}/*"
)

// inElastiCache is the beginning of the ARNs of the store.
const inElastiCache = "arn:${AWS::Partition}:elasticache:${AWS::Region}:${AWS::AccountId}:"

// The gate, and what belongs to it.
const (
	inAppConfig  = "arn:${AWS::Partition}:appconfig:${AWS::Region}:${AWS::AccountId}:"
	application  = inAppConfig + "application/${GateApplication}"
	live         = application + "/environment/${GateEnvironment}"
	deployments  = live + "/deployment/*"
	profile      = application + "/configurationprofile/${GateProfile}"
	versions     = profile + "/hostedconfigurationversion/*"
	theGate      = live + "/configuration/${GateProfile}"
	allAtOnce    = inAppConfig + "deploymentstrategy/AppConfig.AllAtOnce"
	gateStrategy = inAppConfig + "deploymentstrategy/${GateStrategy}"
)

const (
	keyOfOneTenant = `{"ForAllValues:StringEquals":{"dynamodb:LeadingKeys":["TENANT#${OperatorTenant}"]},"Null":{"dynamodb:LeadingKeys":"false"}}`
	listOfOne      = `{"StringEquals":{"s3:prefix":"TENANT%23${OperatorTenant}/"}}`
	ownQueue       = `{"StringEquals":{"sns:Protocol":"sqs"},"StringLike":{"sns:Endpoint":"` + queues + `"}}`
	madeForTopic   = `{"StringEquals":{"aws:RequestTag/topic":"${UpdatesTopic}"},"StringEqualsIfExists":{"aws:ResourceTag/topic":"${UpdatesTopic}"}}`
	ofTopic        = `{"StringEquals":{"aws:ResourceTag/topic":"${UpdatesTopic}"}}`
)

// Conditions on the keys of items that a policy allows to write.
var (
	keysOfParts     = keysLike("SHARED", "PLAN#*", "TENANT#*")
	keysOfRollouts  = keysLike("SHARED", "PLAN#*", "REVISION#*")
	keysOfCells     = keysLike("CELLS", "REVISION#*")
	cellKeys        = keysLike("CELL#*")
	cellsAndReports = keysLike("CELL#*", "REPORT#*")
	reportsVetoes   = keysLike("REPORT#*", "VETO#*")
	onlyVetoes      = keysLike("VETO#*")
)

// keysLike is the condition that a request names keys, and that all of them match one of
// these.
func keysLike(keys ...string) string {
	return `{"ForAllValues:StringLike":{"dynamodb:LeadingKeys":` + asJSON(keys) + `},"Null":{"dynamodb:LeadingKeys":"false"}}`
}

var (
	// closers are the policies that close the gate, or open it.
	closers   = []string{controlPlane, cellsFunction, rolloutOperator}
	gateParts = []string{live, deployments, profile, allAtOnce}
)

// calls are all calls of the binaries. A call has more than one row where policies allow
// it in different ways.
var calls = []call{
	{file: "controlplane/dynamo/table.go", function: "scan", operation: "dynamodb.Scan", actions: []string{"dynamodb:Scan"}, resource: limitsTable, policies: []string{proxy, controlPlane, relayFunction, operator, tenantOperator, rolloutOperator}},
	{file: "controlplane/dynamo/table.go", function: "Get", operation: "dynamodb.GetItem", actions: []string{"dynamodb:GetItem"}, resource: limitsTable, policies: []string{proxy, controlPlane, relayFunction, operator, rolloutOperator}},
	{file: "controlplane/dynamo/table.go", function: "Get", operation: "dynamodb.GetItem", actions: []string{"dynamodb:GetItem"}, resource: limitsTable, policies: []string{tenantOperator}, condition: keyOfOneTenant},
	{file: "controlplane/dynamo/table.go", function: "Get", operation: "dynamodb.GetItem", actions: []string{"dynamodb:GetItem"}, resource: limitsTable, policies: []string{cellsFunction}, condition: keysOfCells},
	// Put and the functions that restore items call it.
	{file: "controlplane/dynamo/table.go", function: "Replace", operation: "dynamodb.PutItem", actions: []string{"dynamodb:PutItem"}, resource: limitsTable, policies: []string{controlPlane, relayFunction}},
	{file: "controlplane/dynamo/table.go", function: "Replace", operation: "dynamodb.PutItem", actions: []string{"dynamodb:PutItem"}, resource: limitsTable, policies: []string{operator}, condition: keysOfParts},
	{file: "controlplane/dynamo/table.go", function: "Replace", operation: "dynamodb.PutItem", actions: []string{"dynamodb:PutItem"}, resource: limitsTable, policies: []string{tenantOperator}, condition: keyOfOneTenant},
	{file: "controlplane/dynamo/table.go", function: "Replace", operation: "dynamodb.PutItem", actions: []string{"dynamodb:PutItem"}, resource: limitsTable, policies: []string{rolloutOperator}, condition: keysOfRollouts},
	{file: "controlplane/dynamo/table.go", function: "Replace", operation: "dynamodb.PutItem", actions: []string{"dynamodb:PutItem"}, resource: limitsTable, policies: []string{cellsFunction}, condition: keysOfCells},
	{file: "controlplane/awscheck/table.go", function: "stream", operation: "dynamodb.DescribeTable", unallowed: byAPerson},
	{file: "controlplane/awscheck/table.go", function: "backups", operation: "dynamodb.DescribeContinuousBackups", unallowed: byAPerson},
	{file: "controlplane/awscheck/table.go", function: "expiry", operation: "dynamodb.DescribeTimeToLive", unallowed: byAPerson},
	{file: "controlplane/awscheck/bucket.go", function: "overwrite", operation: "s3.PutObject", unallowed: byAPerson},
	{file: "controlplane/awscheck/bucket.go", function: "erase", operation: "s3.HeadObject", unallowed: byAPerson},
	{file: "controlplane/awscheck/bucket.go", function: "erase", operation: "s3.DeleteObject", unallowed: byAPerson},
	{file: "controlplane/dynamo/table.go", function: "put", operation: "dynamodb.PutItem", unallowed: "sends what Replace asks for"},
	{file: "controlplane/dynamo/table.go", function: "Create", operation: "dynamodb.CreateTable", unallowed: "the template makes the table, this is for tests and for trying out"},
	{file: "controlplane/dynamo/table.go", function: "Create", operation: "dynamodb.DescribeTable", unallowed: "waits for CreateTable"},
	{file: "controlplane/dynamo/table.go", function: "keyProblem", operation: "dynamodb.DescribeTable", unallowed: "without the right the error names no key"},

	{file: "controlplane/dynamo/stream.go", function: "locate", operation: "dynamodb.DescribeTable", actions: []string{"dynamodb:DescribeTable"}, resource: limitsTable, policies: []string{controlPlane}},
	{file: "controlplane/dynamo/stream.go", function: "Shards", operation: "dynamodbstreams.DescribeStream", actions: []string{"dynamodb:DescribeStream"}, resource: stream, policies: []string{controlPlane}},
	{file: "controlplane/dynamo/stream.go", function: "Start", operation: "dynamodbstreams.GetShardIterator", actions: []string{"dynamodb:GetShardIterator"}, resource: stream, policies: []string{controlPlane}},
	{file: "controlplane/dynamo/stream.go", function: "Read", operation: "dynamodbstreams.GetRecords", actions: []string{"dynamodb:GetRecords"}, resource: stream, policies: []string{controlPlane}},
	{file: "controlplane/dynamo/shard_locks.go", function: "Take", operation: "dynamodb.UpdateItem", actions: []string{"dynamodb:UpdateItem"}, resource: leasesTable, policies: []string{controlPlane}},
	{file: "controlplane/dynamo/shard_locks.go", function: "Note", operation: "dynamodb.UpdateItem", actions: []string{"dynamodb:UpdateItem"}, resource: leasesTable, policies: []string{controlPlane}},
	{file: "controlplane/dynamo/shard_locks.go", function: "Release", operation: "dynamodb.UpdateItem", actions: []string{"dynamodb:UpdateItem"}, resource: leasesTable, policies: []string{controlPlane}},

	{file: "controlplane/dynamo/cells.go", function: "Beat", operation: "dynamodb.UpdateItem", actions: []string{"dynamodb:UpdateItem"}, resource: cellsTable, policies: []string{proxy}, condition: cellKeys},
	{file: "controlplane/dynamo/cells.go", function: "change", operation: "dynamodb.UpdateItem", actions: []string{"dynamodb:UpdateItem"}, resource: cellsTable, policies: []string{operator}, condition: cellKeys},
	{file: "controlplane/dynamo/cells.go", function: "Forget", operation: "dynamodb.DeleteItem", actions: []string{"dynamodb:DeleteItem"}, resource: cellsTable, policies: []string{operator}, condition: cellsAndReports},
	{file: "controlplane/dynamo/cells.go", function: "scan", operation: "dynamodb.Scan", actions: []string{"dynamodb:Scan"}, resource: cellsTable, policies: []string{controlPlane, cellsFunction, operator, rolloutOperator}},
	{file: "controlplane/dynamo/reports.go", function: "Report", operation: "dynamodb.PutItem", actions: []string{"dynamodb:PutItem"}, resource: cellsTable, policies: []string{proxy}, condition: reportsVetoes},
	{file: "controlplane/dynamo/vetoes.go", function: "ForgetVeto", operation: "dynamodb.DeleteItem", actions: []string{"dynamodb:DeleteItem"}, resource: cellsTable, policies: []string{controlPlane, cellsFunction}, condition: onlyVetoes},
	{file: "controlplane/dynamo/vetoes.go", function: "VetoOf", operation: "dynamodb.GetItem", actions: []string{"dynamodb:GetItem"}, resource: cellsTable, policies: []string{proxy}, condition: onlyVetoes},
	{file: "controlplane/dynamo/vetoes.go", function: "Veto", operation: "dynamodb.PutItem", actions: []string{"dynamodb:PutItem"}, resource: cellsTable, policies: []string{proxy}, condition: reportsVetoes},

	{file: "controlplane/dynamo/topic.go", function: "Publish", operation: "sns.PublishBatch", actions: []string{"sns:Publish"}, resource: topic, policies: []string{controlPlane, relayFunction}},
	{file: "controlplane/dynamo/topic.go", function: "Check", operation: "sns.ListSubscriptionsByTopic", actions: []string{"sns:ListSubscriptionsByTopic"}, resource: topic, policies: []string{controlPlane}},
	{file: "controlplane/dynamo/queue.go", function: "subscribe", operation: "sns.Subscribe", actions: []string{"sns:Subscribe"}, resource: topic, policies: []string{proxy}, condition: ownQueue},
	{file: "controlplane/dynamo/queue.go", function: "Close", operation: "sns.Unsubscribe", actions: []string{"sns:Unsubscribe"}, resource: topic, policies: []string{proxy}},
	// With tags.
	{file: "controlplane/dynamo/queue.go", function: "Subscribe", operation: "sqs.CreateQueue", actions: []string{"sqs:CreateQueue", "sqs:TagQueue"}, resource: queues, policies: []string{proxy}, condition: madeForTopic},
	{file: "controlplane/dynamo/queue.go", function: "subscribe", operation: "sqs.GetQueueAttributes", actions: []string{"sqs:GetQueueAttributes"}, resource: queues, policies: []string{proxy}, condition: ofTopic},
	{file: "controlplane/dynamo/queue.go", function: "subscribe", operation: "sqs.SetQueueAttributes", actions: []string{"sqs:SetQueueAttributes"}, resource: queues, policies: []string{proxy}, condition: ofTopic},
	{file: "controlplane/dynamo/queue.go", function: "Receive", operation: "sqs.ReceiveMessage", actions: []string{"sqs:ReceiveMessage"}, resource: queues, policies: []string{proxy}, condition: ofTopic},
	{file: "controlplane/dynamo/queue.go", function: "Receive", operation: "sqs.DeleteMessageBatch", actions: []string{"sqs:DeleteMessage"}, resource: queues, policies: []string{proxy}, condition: ofTopic},
	{file: "controlplane/dynamo/queue.go", function: "Close", operation: "sqs.DeleteQueue", actions: []string{"sqs:DeleteQueue"}, resource: queues, policies: []string{proxy}, condition: ofTopic},
	{file: "controlplane/dynamo/queue.go", function: "tag", operation: "sqs.TagQueue", actions: []string{"sqs:TagQueue"}, resource: queues, policies: []string{proxy}, condition: madeForTopic},
	{file: "controlplane/dynamo/orphan_queues.go", function: "Sweep", operation: "sns.ListSubscriptionsByTopic", actions: []string{"sns:ListSubscriptionsByTopic"}, resource: topic, policies: []string{controlPlane, relayFunction}},
	{file: "controlplane/dynamo/orphan_queues.go", function: "isOrphan", operation: "sqs.GetQueueUrl", actions: []string{"sqs:GetQueueUrl"}, resource: queues, policies: []string{controlPlane, relayFunction}, condition: ofTopic},
	{file: "controlplane/dynamo/orphan_queues.go", function: "isOrphan", operation: "sqs.ListQueueTags", actions: []string{"sqs:ListQueueTags"}, resource: queues, policies: []string{controlPlane, relayFunction}, condition: ofTopic},
	{file: "controlplane/dynamo/orphan_queues.go", function: "take", operation: "sns.Unsubscribe", actions: []string{"sns:Unsubscribe"}, resource: topic, policies: []string{controlPlane, relayFunction}},
	{file: "controlplane/dynamo/orphan_queues.go", function: "take", operation: "sqs.DeleteQueue", actions: []string{"sqs:DeleteQueue"}, resource: queues, policies: []string{controlPlane, relayFunction}, condition: ofTopic},
	{file: "controlplane/dynamo/dead_letters.go", function: "Check", operation: "sqs.GetQueueAttributes", actions: []string{"sqs:GetQueueAttributes"}, resource: deadLetters, policies: []string{controlPlane}},
	{file: "controlplane/dynamo/dead_letters.go", function: "Send", operation: "sqs.SendMessage", actions: []string{"sqs:SendMessage"}, resource: deadLetters, policies: []string{controlPlane, relayFunction}},

	// Each call needs its own parts of the gate, and the policies name all of them.
	{file: "controlplane/appconfig/deploy.go", function: "stop", operation: "appconfig.ListDeployments", actions: []string{"appconfig:ListDeployments"}, resource: application, also: gateParts, policies: closers},
	{file: "controlplane/appconfig/deploy.go", function: "Latest", operation: "appconfig.ListDeployments", actions: []string{"appconfig:ListDeployments"}, resource: application, also: gateParts, policies: closers},
	{file: "controlplane/appconfig/deploy.go", function: "isMine", operation: "appconfig.GetDeployment", actions: []string{"appconfig:GetDeployment"}, resource: application, also: gateParts, policies: closers},
	{file: "controlplane/appconfig/deploy.go", function: "stop", operation: "appconfig.StopDeployment", actions: []string{"appconfig:StopDeployment"}, resource: application, also: gateParts, policies: closers},
	{file: "controlplane/appconfig/deploy.go", function: "Deploy", operation: "appconfig.CreateHostedConfigurationVersion", actions: []string{"appconfig:CreateHostedConfigurationVersion"}, resource: application, also: gateParts, policies: closers},
	{file: "controlplane/appconfig/deploy.go", function: "Deploy", operation: "appconfig.StartDeployment", actions: []string{"appconfig:StartDeployment"}, resource: application, also: gateParts, policies: closers},
	// With limitgate rollout --strategy.
	{file: "controlplane/appconfig/deploy.go", function: "Deploy", operation: "appconfig.StartDeployment", actions: gateActions, resource: gateStrategy, policies: []string{rolloutOperator}},
	{file: "controlplane/appconfig/deploy.go", function: "describe", operation: "appconfig.GetHostedConfigurationVersion", actions: []string{"appconfig:GetHostedConfigurationVersion"}, resource: application, also: []string{profile, versions}, policies: []string{rolloutOperator}},
	{file: "controlplane/appconfig/gate.go", function: "poll", operation: "appconfigdata.StartConfigurationSession", actions: []string{"appconfig:StartConfigurationSession"}, resource: theGate, policies: []string{proxy}},
	{file: "controlplane/appconfig/gate.go", function: "poll", operation: "appconfigdata.GetLatestConfiguration", actions: []string{"appconfig:GetLatestConfiguration"}, resource: theGate, policies: []string{proxy}},

	{file: "controlplane/audit/bucket.go", function: "Create", operation: "s3.PutObject", actions: []string{"s3:PutObject"}, resource: objects, policies: []string{controlPlane, auditFunction}},
	{file: "controlplane/audit/bucket.go", function: "Check", operation: "s3.HeadBucket", unallowed: "a control plane that may not look for the bucket starts without that"},
	{file: "controlplane/audit/bucket.go", function: "Read", operation: "s3.ListObjectsV2", actions: []string{"s3:ListBucket"}, resource: bucket, policies: []string{operator, auditor}},
	{file: "controlplane/audit/bucket.go", function: "Read", operation: "s3.ListObjectsV2", actions: []string{"s3:ListBucket"}, resource: bucket, policies: []string{tenantOperator}, condition: listOfOne},
	{file: "controlplane/audit/bucket.go", function: "Items", operation: "s3.ListObjectsV2", actions: []string{"s3:ListBucket"}, resource: bucket, policies: []string{operator, auditor}},
	{file: "controlplane/audit/bucket.go", function: "read", operation: "s3.GetObject", actions: []string{"s3:GetObject"}, resource: objects, policies: []string{operator, auditor}},
	{file: "controlplane/audit/bucket.go", function: "read", operation: "s3.GetObject", actions: []string{"s3:GetObject"}, resource: oneTenant, policies: []string{tenantOperator}},

	{file: "internal/redisauth/secret_read.go", function: "SecretsManager", operation: "secretsmanager.GetSecretValue", actions: []string{"secretsmanager:GetSecretValue"}, resource: "${StoreSecret}", policies: []string{storeSecret}},
	{file: "cmd/limitgate/limits_table.go", function: "caller", operation: "sts.GetCallerIdentity", unallowed: "AWS tells everybody who they are"},
}

// gateActions are the actions that are allowed on all parts of the gate.
var gateActions = []string{
	"appconfig:ListDeployments", "appconfig:GetDeployment", "appconfig:StopDeployment",
	"appconfig:CreateHostedConfigurationVersion", "appconfig:StartDeployment",
}

// The roles of the functions, whose inline policies are for Lambda's own calls.
const (
	relayRole = "RelayRole"
	auditRole = "AuditRole"
	cellsRole = "CellsRole"
)

// callsOfLambda are the calls of Lambda itself with the role of a function: it follows a
// stream, gives up batches that fail for too long, and logs.
var callsOfLambda = []call{
	{actions: []string{"dynamodb:DescribeStream", "dynamodb:GetShardIterator", "dynamodb:GetRecords"}, resource: stream, policies: []string{relayFunction, auditFunction}},
	{actions: []string{"dynamodb:ListStreams"}, resource: streams, policies: []string{relayFunction, auditFunction}},
	{actions: []string{"dynamodb:DescribeStream", "dynamodb:GetShardIterator", "dynamodb:GetRecords"}, resource: cellsStream, policies: []string{cellsFunction}},
	{actions: []string{"dynamodb:ListStreams"}, resource: cellsStreams, policies: []string{cellsFunction}},
	{actions: []string{"sqs:SendMessage"}, resource: failed, policies: []string{relayRole, auditRole, cellsRole}},
	{actions: []string{"logs:CreateLogStream", "logs:PutLogEvents"}, resource: "${RelayLogGroup.Arn}", policies: []string{relayRole}},
	{actions: []string{"logs:CreateLogStream", "logs:PutLogEvents"}, resource: "${AuditLogGroup.Arn}", policies: []string{auditRole}},
	{actions: []string{"logs:CreateLogStream", "logs:PutLogEvents"}, resource: "${CellsLogGroup.Arn}", policies: []string{cellsRole}},
}

// loginsByIAM are what logging in to the store with a token of IAM needs, which is no call of
// the SDK.
var loginsByIAM = []call{
	{actions: []string{"elasticache:Connect"}, resource: inElastiCache + "replicationgroup:${StoreName}", also: []string{inElastiCache + "user:${UserName}"}, policies: []string{storeConnect}},
	{actions: []string{"elasticache:Connect"}, resource: inElastiCache + "serverlesscache:${CacheName}", also: []string{inElastiCache + "user:${UserName}"}, policies: []string{serverless}},
}

// allCalls returns the calls of the binaries, of Lambda for them, and their logins.
func allCalls() []call {
	return slices.Concat(callsOfLambda, calls, loginsByIAM)
}
