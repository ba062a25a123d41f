package alerts

import (
	"fmt"
	"strings"
)

// templateHead is the part of the template above its alarms.
const templateHead = `# ` + written + `
AWSTemplateFormatVersion: '2010-09-09'
Description: >-
  Alarms on the metrics that limitgate serve writes with --emf. Those of limits as data are in
  control-plane.yaml.

Parameters:
  Service:
    Type: String
    Default: limitgate
    AllowedPattern: '^[ -~]{1,255}$'
    Description: The value of --emf-service of the proxies.
  AlarmTopicArn:
    Type: String
    Default: ''
    AllowedPattern: '^$|^arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+$'
    Description: ARN of an SNS topic that receives alarms. If it is empty, alarms notify of nothing.
  PageTopicArn:
    Type: String
    Default: ''
    AllowedPattern: '^$|^arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+$'
    Description: ARN of an SNS topic that wakes people. If it is empty, AlarmTopicArn receives pages.

Conditions:
  TellsOfAlarms: !Not [!Equals [!Ref AlarmTopicArn, '']]
  Pages: !Not [!Equals [!Ref PageTopicArn, '']]

Resources:
`

const (
	notifies = `!If [TellsOfAlarms, [!Ref AlarmTopicArn], !Ref AWS::NoValue]`
	wakes    = `!If [Pages, [!Ref PageTopicArn], ` + notifies + `]`
	service  = `[{Name: Service, Value: !Ref Service}]`
)

// CloudFormation returns the template of the alarms of proxies.
func CloudFormation() []byte {
	var alarms []string
	for _, a := range All() {
		if a.Twin != nil && !a.Twin.Elsewhere {
			alarms = append(alarms, a.Twin.resource(a))
		}
	}
	return []byte(templateHead + strings.Join(alarms, "\n"))
}

// resource returns the alarm as a resource of a template.
func (t *Twin) resource(a Alert) string {
	var b strings.Builder
	line := func(indent int, format string, values ...any) {
		b.WriteString(strings.Repeat(" ", indent))
		fmt.Fprintf(&b, format+"\n", values...)
	}
	line(2, "%s:", t.Alarm)
	line(4, "Type: AWS::CloudWatch::Alarm")
	line(4, "Properties:")
	line(6, "AlarmDescription: >-")
	line(8, "%s", a.Summary)
	line(8, "%s#%s", runbookURL, anchor(a.Section))
	actions := notifies
	if a.Severity == Page {
		actions = wakes
	}
	line(6, "AlarmActions: %s", actions)
	if t.Expression == "" {
		line(6, "Namespace: Limitgate")
		line(6, "MetricName: %s", t.Metrics[0].Name)
		line(6, "Dimensions: %s", service)
		line(6, "Period: 60")
		line(6, "Statistic: %s", t.Metrics[0].Statistic)
	} else {
		line(6, "Metrics:")
		line(8, "- Id: value")
		line(8, "  Expression: %s", t.Expression)
		line(8, "  Label: %s", a.Name)
		for _, m := range t.Metrics {
			line(8, "- Id: %s", m.ID)
			line(8, "  ReturnData: false")
			line(8, "  MetricStat:")
			line(8, "    Metric:")
			line(8, "      Namespace: Limitgate")
			line(8, "      MetricName: %s", m.Name)
			line(8, "      Dimensions: %s", service)
			line(8, "    Period: 60")
			line(8, "    Stat: %s", m.Statistic)
		}
	}
	line(6, "ComparisonOperator: GreaterThanThreshold")
	line(6, "Threshold: %s", number(t.Threshold))
	line(6, "EvaluationPeriods: %d", t.Minutes)
	line(6, "TreatMissingData: notBreaching")
	return b.String()
}
