package awsclient

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// advices are remedies for refusals, by the error code of AWS. Services have two
// families of codes.
var advices = map[string]string{
	"UnrecognizedClientException": adviceKey, "InvalidClientTokenId": adviceKey, "InvalidAccessKeyId": adviceKey,
	"InvalidSignatureException": adviceSecret, "SignatureDoesNotMatch": adviceSecret,
	"ExpiredTokenException": adviceExpired, "ExpiredToken": adviceExpired, "RequestExpired": adviceExpired,
	"AWS.SimpleQueueService.NonExistentQueue": adviceQueue, "QueueDoesNotExist": adviceQueue,
	"AccessDeniedException": adviceDenied, "AccessDenied": adviceDenied, "AuthorizationError": adviceDenied,
}

const (
	adviceKey     = "AWS does not know the access key: check AWS_PROFILE and AWS_ACCESS_KEY_ID, and the output of `aws sts get-caller-identity`"
	adviceSecret  = "the secret does not belong to the access key, or the clock of this machine is wrong: check AWS_PROFILE and AWS_SECRET_ACCESS_KEY"
	adviceExpired = "the credentials have expired: get new ones, as with `aws sso login`"
	adviceDenied  = "the credentials are valid, but their policy does not allow the operation: deploy/cloudformation has policies that do"
	adviceQueue   = "there is no queue with this URL: check its region, account and name; `aws sqs list-queues` lists the URLs"
	adviceProfile = "AWS_PROFILE names a profile that is in neither ~/.aws/config nor ~/.aws/credentials: `aws configure list-profiles` lists them"
	adviceHost    = "the host of AWS has no address: check AWS_REGION, which is a part of its name, AWS_ENDPOINT_URL, and the name server of this machine"
	adviceURL     = "%s is no URL: write %s, or unset it"
	adviceNetwork = "AWS does not answer: check the network, HTTPS_PROXY, and AWS_ENDPOINT_URL if it is set"
	adviceClosed  = "the server closes the connection without an answer: check AWS_ENDPOINT_URL, if it is set, and HTTPS_PROXY"
	adviceTLS     = "the server does not speak TLS: write http:// in AWS_ENDPOINT_URL, or the port that does"
	adviceAnswer  = "the answer is not one of %s at AWS: check AWS_ENDPOINT_URL and %s, if they are set, and HTTPS_PROXY; the server there may not have this service, or the region that AWS_REGION or AWS_DEFAULT_REGION names"
	adviceNone    = "no usable credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)

// Advice returns a remedy for an error of AWS that concerns credentials or the way to it, or "".
func Advice(err error) string {
	var refused smithy.APIError
	if errors.As(err, &refused) && advices[refused.ErrorCode()] != "" {
		return advices[refused.ErrorCode()]
	}
	var operation *smithy.OperationError
	service := ""
	if errors.As(err, &operation) {
		service = operation.ServiceID
	}
	variable, endpoint := endpointOf(os.Environ(), service)
	badURL := badEndpoint(variable, endpoint)
	switch {
	case errors.As(err, new(awsconfig.SharedConfigProfileNotExistError)):
		return adviceProfile
	case err != nil && strings.Contains(err.Error(), "get credentials: "): // the SDK has no type for this error
		return adviceNone
	case operation == nil:
		return ""
	case badURL != "":
		return badURL
	case errors.As(err, new(*net.DNSError)) && badRegion(os.Environ()) != "" && endpoint == "":
		return badRegion(os.Environ())
	case errors.As(err, new(*net.DNSError)):
		return adviceHost
	case errors.Is(err, io.EOF):
		return adviceClosed
	case errors.As(err, new(*net.OpError)), isTimeout(err):
		return adviceNetwork
	case errors.As(err, new(tls.RecordHeaderError)), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return adviceTLS
	case isForeign(err):
		advice := fmt.Sprintf(adviceAnswer, service, ownEndpointVariable(service))
		if region := badRegion(os.Environ()); region != "" {
			advice += "; " + region
		}
		return advice
	}
	return ""
}

// IsCall reports whether an error is that of a call of AWS.
func IsCall(err error) bool { return errors.As(err, new(*smithy.OperationError)) }

// isTimeout reports whether a call ended as there was no answer in time.
func isTimeout(err error) bool {
	var of net.Error
	return errors.As(err, &of) && of.Timeout()
}

// isForeign reports whether a server replied, and its reply is neither a result nor a refusal of the
// service: another server than AWS, or one without the service.
func isForeign(err error) bool {
	var replied *smithyhttp.ResponseError
	if !errors.As(err, &replied) || replied.Response == nil || replied.HTTPStatusCode() == 0 || errors.Is(err, io.ErrUnexpectedEOF) { // cut off
		return false
	}
	var refused smithy.APIError
	const noCode = "UnknownError" // of an answer in JSON that has none
	return !errors.As(err, &refused) || refused.ErrorCode() == noCode && replied.HTTPStatusCode() < http.StatusInternalServerError
}

// endpointVariable has the URL of all services that have no variable of their own.
const endpointVariable = "AWS_ENDPOINT_URL"

// ownEndpointVariable returns the variable with the URL of one service.
// Source: https://docs.aws.amazon.com/sdkref/latest/guide/feature-ss-endpoints.html
func ownEndpointVariable(service string) string {
	return endpointVariable + "_" + strings.ToUpper(strings.ReplaceAll(service, " ", "_"))
}

// endpointOf returns the variable of environ with the URL of a service, and its text, or "".
func endpointOf(environ []string, service string) (variable, text string) {
	for _, variable := range []string{ownEndpointVariable(service), endpointVariable} {
		for _, v := range environ {
			if text, found := strings.CutPrefix(v, variable+"="); found && text != "" {
				return variable, text
			}
		}
	}
	return "", ""
}

// badEndpoint returns advice about a variable that is meant to have the URL of a service and does not,
// or "".
func badEndpoint(variable, text string) string {
	if text == "" {
		return ""
	}
	if u, err := url.Parse(text); err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" {
		return ""
	}
	meant := "http://" + text
	if u, err := url.Parse(meant); err != nil || u.Host == "" || u.Port() == "" || u.User != nil || strings.Contains(text, "://") {
		meant = "for example http://127.0.0.1:8000"
	}
	return fmt.Sprintf(adviceURL, variable, meant)
}

// regionName matches the names of regions, https://docs.aws.amazon.com/global-infrastructure/latest/regions/aws-regions.html.
var regionName = regexp.MustCompile(`^[a-z]{2,5}(-[a-z]+){1,3}-[0-9]{1,2}$`)

// regionText matches what is most likely meant as a region.
var regionText = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// badRegion returns advice about a variable that is meant to have a region and does not, or "".
func badRegion(environ []string) string {
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION"} {
		for _, v := range environ {
			if text, found := strings.CutPrefix(v, name+"="); found && text != "" {
				if regionName.MatchString(text) {
					return ""
				}
				if !regionText.MatchString(text) {
					return name + " is no region: write for example eu-central-1" // it may be a secret
				}
				return fmt.Sprintf("%s is %q, which is no region of AWS: write for example eu-central-1", name, text)
			}
		}
	}
	return ""
}

// noAnswer matches the parts of an answer of AWS in the error of a call that had none.
var noAnswer = regexp.MustCompile(`https response error StatusCode: 0, RequestID: , (HostID: , )?`)

// Explain returns the text of an error, which is not nil, without the empty parts of an error of AWS, and
// with its remedy if Advice has one. It may be called concurrently.
func Explain(err error) string {
	text := Plain(err.Error())
	if advice := Advice(err); advice != "" {
		text += "; " + advice
	}
	return text
}

// ExplainAttr explains the errors of log lines, as the ReplaceAttr of slog.HandlerOptions. It may be called
// concurrently.
func ExplainAttr(_ []string, a slog.Attr) slog.Attr {
	if err, ok := a.Value.Any().(error); ok && a.Value.Kind() == slog.KindAny {
		a.Value = slog.StringValue(Explain(err))
	}
	return a
}

// Plain returns the text of an error of AWS without the parts that are empty, and without the end of a very long line: a
// server may have written it. It may be called concurrently.
func Plain(text string) string {
	lines := strings.Split(noAnswer.ReplaceAllString(text, ""), "\n")
	for i, line := range lines {
		if len(line) > maxText {
			lines[i] = strings.ToValidUTF8(line[:maxText], "") + " ..."
		}
	}
	return strings.Join(lines, "\n")
}
