package cloudformation

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	// notifies is the action of an alarm, and wakes that of a page.
	notifies = `{"Fn::If":["TellsOfAlarms",["${AlarmTopicArn}"],"${AWS::NoValue}"]}`
	wakes    = `{"Fn::If":["Pages",["${PageTopicArn}"],` + notifies + `]}`
)

// alarms are all alarms, each in a line: the metric, the threshold, and the number of
// breaching periods of all.
var alarms = map[string]string{
	"RelayLateAlarm":           "AWS/Lambda IteratorAge of ${RelayFunction}, Maximum of 60 s > 30000, 1 of 1, notifies",
	"AuditLateAlarm":           "AWS/Lambda IteratorAge of ${AuditFunction}, Maximum of 60 s > 30000, 1 of 1, notifies",
	"DeadLettersAlarm":         "AWS/SQS ApproximateNumberOfMessagesVisible of ${DeadLetterQueue.QueueName}, Maximum of 60 s > 0, 1 of 1, notifies",
	"FailedBatchesAlarm":       "AWS/SQS ApproximateNumberOfMessagesVisible of ${FailedBatchQueue.QueueName}, Maximum of 60 s > 0, 1 of 1, notifies",
	"OverAdmissionAlarm":       "Limitgate OverAdmissionMax, Maximum of 60 s >= 1.5, 1 of 1, notifies",
	"OverAdmissionTripleAlarm": "Limitgate OverAdmissionMax, Maximum of 60 s >= 3, 1 of 1, wakes",
	"OverAdmissionLastsAlarm":  "Limitgate OverAdmissionMax, Maximum of 60 s >= 1.5, 10 of 10, wakes",
	"UnknownActorAlarm":        "Limitgate UnknownActor, Sum of 60 s > 0, 1 of 1, notifies",
	"CellsThrottledAlarm":      "AWS/DynamoDB WriteThrottleEvents of ${CellsTable}, Sum of 60 s > 0, 3 of 5, notifies",
	"LeasesThrottledAlarm":     "AWS/DynamoDB WriteThrottleEvents of ${LeasesTable}, Sum of 60 s > 0, 3 of 5, notifies",
	"UndeliveredAlarm":         "AWS/SNS NumberOfNotificationsFailed of ${UpdatesTopic.TopicName}, Sum of 300 s > 0, 3 of 3, notifies",
	"DecisionsSlowAlarm":       "Limitgate DecisionP99 of ${Service}, Average of 60 s > 5, 5 of 5, notifies",
	"ShardOutAlarm":            "Limitgate OpenBreakers of ${Service}, Maximum of 60 s > 0.5, 1 of 1, wakes",
	"StoreOutAlarm":            "Limitgate OpenBreakers of ${Service}, Average of 10 s > 0.5, 3 of 3, wakes",
	"StoreBusyAlarm":           "AWS/ElastiCache EngineCPUUtilization of ${Store} Primary, Maximum of 60 s > 70, 5 of 5, notifies",
	"StoreFullAlarm":           "AWS/ElastiCache DatabaseMemoryUsageCountedForEvictPercentage of ${Store} Primary, Maximum of 60 s > 75, 5 of 5, wakes",
	"StoreEvictsAlarm":         `SELECT SUM(Evictions) FROM SCHEMA("AWS/ElastiCache", CacheClusterId, CacheNodeId) > 0, 1 of 1, notifies`,
	"IamThrottledAlarm":        `SELECT SUM(IamAuthenticationThrottling) FROM SCHEMA("AWS/ElastiCache", CacheClusterId, CacheNodeId) > 0, 3 of 3, notifies`,
	"ServerlessThrottledAlarm": "AWS/ElastiCache ThrottledCmds of ${CacheName}, Sum of 60 s > 0, 3 of 3, notifies",
	"ServerlessEvictsAlarm":    "AWS/ElastiCache Evictions of ${CacheName}, Sum of 60 s > 0, 1 of 1, notifies",
	"LimitsStaleAlarm":         "Limitgate ConfigStale of ${Service}, Maximum of 60 s > 0, 5 of 5, notifies",
	"BackstopDecidesAlarm": "IF(decisions > 60, backstop / decisions, 0) > 0.05, 5 of 5, wakes; backstop: Limitgate Backstop of ${Service}, Sum of 60 s; " +
		"decisions: Limitgate Decisions of ${Service}, Sum of 60 s",
	"StoreErrorsAlarm": "IF(decisions > 60, errors / decisions, 0) > 0.01, 10 of 10, notifies; errors: Limitgate StoreErrors of ${Service}, Sum of 60 s; " +
		"decisions: Limitgate Decisions of ${Service}, Sum of 60 s",
	"LeasesSmallAlarm": "IF(refreshes > 60, refreshes / (leased + 1), 0) > 0.5, 5 of 5, notifies; refreshes: Limitgate LeaseRefreshes of ${Service}, Sum of 60 s; " +
		"leased: Limitgate LeaseDecisions of ${Service}, Sum of 60 s",
	"FunctionErrorsAlarm": "FILL(relay, 0) + FILL(audit, 0) + FILL(cells, 0) > 0, 2 of 5, notifies; relay: AWS/Lambda Errors of ${RelayFunction}, Sum of 60 s; " +
		"audit: AWS/Lambda Errors of ${AuditFunction}, Sum of 60 s; cells: AWS/Lambda Errors of ${CellsFunction}, Sum of 60 s",
	"LimitsThrottledAlarm": "FILL(reads, 0) + FILL(writes, 0) > 0, 3 of 5, notifies; reads: AWS/DynamoDB ReadThrottleEvents of ${LimitsTable}, Sum of 60 s; " +
		"writes: AWS/DynamoDB WriteThrottleEvents of ${LimitsTable}, Sum of 60 s",
	"SystemErrorsAlarm": "FILL(scans, 0) + FILL(gets, 0) + FILL(puts, 0) + FILL(beats, 0) + FILL(reports, 0) + FILL(leases, 0) > 0, 3 of 5, notifies; " +
		"scans: AWS/DynamoDB SystemErrors of ${LimitsTable} Scan, Sum of 60 s; gets: AWS/DynamoDB SystemErrors of ${LimitsTable} GetItem, Sum of 60 s; " +
		"puts: AWS/DynamoDB SystemErrors of ${LimitsTable} PutItem, Sum of 60 s; beats: AWS/DynamoDB SystemErrors of ${CellsTable} UpdateItem, Sum of 60 s; " +
		"reports: AWS/DynamoDB SystemErrors of ${CellsTable} PutItem, Sum of 60 s; leases: AWS/DynamoDB SystemErrors of ${LeasesTable} UpdateItem, Sum of 60 s",
}

// lineOf describes an alarm in a line.
func lineOf(properties any) string {
	word := func(path ...string) string { return fmt.Sprint(at(properties, path...)) }
	what := ""
	var parts []string
	metrics, _ := at(properties, "Metrics").([]any)
	for _, m := range metrics {
		if expression := at(m, "Expression"); expression != nil {
			what = fmt.Sprint(expression)
		} else if at(m, "ReturnData") == false {
			parts = append(parts, fmt.Sprintf("; %v: %s, %v of %v s", at(m, "Id"), metricOf(at(m, "MetricStat", "Metric")), at(m, "MetricStat", "Stat"), at(m, "MetricStat", "Period")))
		}
	}
	if metrics == nil {
		what = fmt.Sprintf("%s, %s of %s s", metricOf(properties), word("Statistic"), word("Period"))
	}
	when := map[string]string{"GreaterThanThreshold": ">", "GreaterThanOrEqualToThreshold": ">="}[word("ComparisonOperator")]
	often := at(properties, "DatapointsToAlarm")
	if often == nil {
		often = at(properties, "EvaluationPeriods")
	}
	does := map[string]string{notifies: "notifies", wakes: "wakes"}[asJSON(at(properties, "AlarmActions"))]
	line := fmt.Sprintf("%s %s %s, %v of %s, %s", what, when, word("Threshold"), often, word("EvaluationPeriods"), does)
	if missing := word("TreatMissingData"); missing != "notBreaching" {
		line += ", without data " + missing
	}
	return line + strings.Join(parts, "")
}

// metricOf describes a metric.
func metricOf(value any) string {
	text := fmt.Sprintf("%v %v", at(value, "Namespace"), at(value, "MetricName"))
	dimensions, _ := at(value, "Dimensions").([]any)
	for i, dimension := range dimensions {
		if i == 0 {
			text += " of"
		}
		text += fmt.Sprintf(" %v", at(dimension, "Value"))
	}
	return text
}

// checkAlarms returns the alarms that differ from the table.
func checkAlarms(t template) (problems []string) {
	there := t.resources("AWS::CloudWatch::Alarm")
	for _, name := range there {
		if got := lineOf(at(t, "Resources", name, "Properties")); got != alarms[name] {
			problems = append(problems, fmt.Sprintf("%s is %s", name, got))
		}
	}
	for name := range alarms {
		if !slices.Contains(there, name) {
			problems = append(problems, name+" is missing")
		}
	}
	slices.Sort(problems)
	return problems
}

func TestAlarms(t *testing.T) {
	parsed, err := parseTemplates(readTemplates(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range checkAlarms(parsed) {
		t.Error(problem)
	}
}

func TestCheckAlarmsReportsWhatIsWrong(t *testing.T) {
	for name, test := range map[string]struct {
		old, new string
		want     []string
	}{
		"in seconds":           {"Threshold: 30000", "Threshold: 30", []string{"RelayLateAlarm is"}},
		"of nothing":           {"Dimensions: [{Name: FunctionName, Value: !Ref AuditFunction}]", "Dimensions: []", []string{"AuditLateAlarm is"}},
		"of one too many":      {"Threshold: 1.5\n      EvaluationPeriods: 1\n", "Threshold: 15\n      EvaluationPeriods: 1\n", []string{"OverAdmissionAlarm is"}},
		"a page that notifies": {"AlarmActions: !If [Pages, [!Ref PageTopicArn], !If [TellsOfAlarms, [!Ref AlarmTopicArn], !Ref AWS::NoValue]]", "AlarmActions: !If [TellsOfAlarms, [!Ref AlarmTopicArn], !Ref AWS::NoValue]", []string{"OverAdmissionTripleAlarm is"}},
		"for a minute":         {"      EvaluationPeriods: 10\n", "      EvaluationPeriods: 1\n", []string{"OverAdmissionLastsAlarm is"}},
		"an alarm too few":     {"  DeadLettersAlarm:\n    Type: AWS::CloudWatch::Alarm", "  DeadLettersAlarm:\n    Type: AWS::CloudWatch::Dashboard", []string{"DeadLettersAlarm is missing"}},
		"a foreign metric":     {"      Namespace: Limitgate\n      MetricName: UnknownActor\n", "      Namespace: Limitgates\n      MetricName: UnknownActor\n", []string{"UnknownActorAlarm is"}},
	} {
		t.Run(name, func(t *testing.T) { reported(t, test.old, test.new, test.want, checkAlarms) })
	}
}

// TestAlarmsMatchTheCode compares the alarms with the metrics and log lines of the
// functions, and with the thresholds of the control plane.
func TestAlarmsMatchTheCode(t *testing.T) {
	parsed, err := parseTemplates(readTemplates(t))
	if err != nil {
		t.Fatal(err)
	}
	filter, _ := at(parsed, "Resources", "UnknownActorFilter", "Properties", "FilterPattern").(string)
	now, _, _ := strings.Cut(strings.TrimPrefix(filter, "?"), " ?") // the other is of earlier releases
	line, err := strconv.Unquote(now)                               // a quoted pattern matches as a whole, in JSON as in text
	if err != nil {
		t.Fatalf("the filter is %s: %v", filter, err)
	}
	for file, wants := range map[string][]string{
		"controlplane/audit/audit.go":     {`w.Log.Error(` + strconv.Quote(line) + `,`},
		"internal/emf/line.go":            {`Namespace = "Limitgate"`},
		"cmd/limitgate-lambda/metrics.go": {`emf.One("OverAdmissionMax", emf.UnitNone, o.Max)`},
		"controlplane/admission.go":       {"alarmAt = 1.5", "pageAt = 3", "pageAfter = 10 * time.Minute"},
	} {
		source, err := os.ReadFile(filepath.Join("..", "..", filepath.FromSlash(file)))
		if err != nil {
			t.Fatal(err)
		}
		text := regexp.MustCompile(`[ \t]+`).ReplaceAllString(string(source), " ")
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not have %s, of which there is an alarm", file, want)
			}
		}
	}
	if got := asJSON(at(parsed, "Resources", "UnknownActorFilter", "Properties", "MetricTransformations")); got != `[{"DefaultValue":0,"MetricName":"UnknownActor","MetricNamespace":"Limitgate","MetricValue":"1"}]` {
		t.Errorf("the filter makes %s", got)
	}
}
