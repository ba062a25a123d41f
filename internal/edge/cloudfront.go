package edge

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/limitgate/limitgate/limit"
)

// DefaultForwardedIPHeader is the header that the function of CloudFront writes.
const DefaultForwardedIPHeader = "True-Client-IP"

// headerName matches the names of header fields that WAF and CloudFront take.
var headerName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// refusedByCloudFront matches the names of header fields that functions of CloudFront may not write:
// https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/edge-function-restrictions-all.html
var refusedByCloudFront = regexp.MustCompile(`^(?i:connection|expect|keep-alive|proxy-authenticate|proxy-authorization|proxy-connection|trailer|upgrade|` +
	`x-accel-.*|x-amz-cf-.*|x-amzn-.*|x-cache.*|x-edge-.*|x-forwarded-proto|x-real-ip|content-length|host|transfer-encoding|via|cdn-loop|warning|cloudfront-.*)$`)

// CheckHeader returns an error for a name that no header field can have at the edge.
func CheckHeader(kind Kind, name string) error {
	switch {
	case !headerName.MatchString(name):
		return fmt.Errorf("%.64q is not the name of a header: letters, digits, - and _, such as X-Api-Key", name)
	case kind == KindCloudFront && refusedByCloudFront.MatchString(name):
		return fmt.Errorf("CloudFront lets no function write %s: choose another name, such as %s", name, DefaultForwardedIPHeader)
	}
	return nil
}

// viewerCode is the function. CloudFront appends the viewer's address to X-Forwarded-For on the way to
// the origin, whatever the viewer wrote there.
const viewerCode = `function handler(event) {
  var request = event.request;
  delete request.headers['x-forwarded-for'];
%s  return request;
}
`

// viewerAddress returns the template of a function and a policy that bring the viewer's address to the
// origin.
func viewerAddress(set *limit.Set, opts Options) template {
	header := cmp.Or(opts.ForwardedIPHeader, DefaultForwardedIPHeader)
	write := fmt.Sprintf("  request.headers['%s'] = {value: event.viewer.ip};\n", strings.ToLower(header))
	if strings.EqualFold(header, "X-Forwarded-For") {
		write = ""
	}
	t := template{
		description: "The viewer's address for an origin that asks Limitgate. " + generated,
		notes:       viewerNotes(header),
		resources: object{
			{key: "ViewerAddressFunction", value: object{
				{key: "Type", value: "AWS::CloudFront::Function"},
				{key: "Properties", value: object{
					{key: "Name", value: object{{key: "Fn::Sub", value: "${AWS::StackName}-viewer-address"}}},
					{key: "AutoPublish", value: true},
					{key: "FunctionConfig", value: object{{key: "Comment", value: generated}, {key: "Runtime", value: "cloudfront-js-2.0"}}},
					{key: "FunctionCode", value: fmt.Sprintf(viewerCode, write)},
				}},
			}},
			{key: "ViewerAddressPolicy", value: object{
				{key: "Type", value: "AWS::CloudFront::OriginRequestPolicy"},
				{key: "Properties", value: object{{key: "OriginRequestPolicyConfig", value: object{
					{key: "Name", value: object{{key: "Fn::Sub", value: "${AWS::StackName}-viewer-address"}}},
					{key: "Comment", value: generated},
					{key: "HeadersConfig", value: object{
						{key: "HeaderBehavior", value: "allViewerAndWhitelistCloudFront"},
						{key: "Headers", value: list{"CloudFront-Viewer-Address"}},
					}},
					{key: "CookiesConfig", value: object{{key: "CookieBehavior", value: "all"}}},
					{key: "QueryStringsConfig", value: object{{key: "QueryStringBehavior", value: "all"}}},
				}}}},
			}},
		},
		outputs: object{
			{key: "FunctionArn", value: object{{key: "Value", value: object{{key: "Fn::GetAtt", value: list{"ViewerAddressFunction", "FunctionMetadata.FunctionARN"}}}}}},
			{key: "OriginRequestPolicyId", value: object{{key: "Value", value: object{{key: "Ref", value: "ViewerAddressPolicy"}}}}},
		},
	}
	warnViewer(&t, set, header)
	return t
}

// warnViewer warns that the template has no limits, and names those that need the viewer's address.
func warnViewer(t *template, set *limit.Set, header string) {
	needed := 0
	for _, l := range set.Limits {
		byAddress := l.CountsAddresses() || slices.ContainsFunc(l.Clauses(), func(c limit.Clause) bool { return c.Dim == "ip" })
		if byAddress && l.Mode != limit.ModeOff {
			needed++
			t.warn(l, "it needs the viewer's address: ask Limitgate with the one in %s", header)
		}
	}
	t.warnings = append(t.warnings, Warning{1, fmt.Sprintf("the template limits nothing: of %d limits %d need the viewer's address, and none is rendered", len(set.Limits), needed)})
}

func viewerNotes(header string) []string {
	return []string{
		"A cache behavior of a distribution takes both:",
		"",
		"  OriginRequestPolicyId: !ImportValue or parameter with OriginRequestPolicyId",
		"  FunctionAssociations:",
		"    - {EventType: viewer-request, FunctionARN: FunctionArn}",
		"",
		"A policy cannot write headers. It adds CloudFront-Viewer-Address, the viewer's address and port, which",
		"viewers cannot write; Limitgate takes addresses without a port. CloudFront appends the viewer's address",
		"to X-Forwarded-For, whose other addresses anyone can write. The function deletes X-Forwarded-For as the",
		"viewer sent it, so that only that address is left, and the address is in " + header + ", too. It is the one",
		"function of viewer-request that the behavior can have. The origin has to refuse requests that do not come",
		"from this distribution: in those, each of these headers can be anything.",
		"The policy forwards all headers of the viewer, Host too. An origin that needs its own Host, such as",
		"API Gateway, needs a policy of your own: with " + header + " and CloudFront-Viewer-Address in it.",
	}
}
