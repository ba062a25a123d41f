package awsclient

import (
	"errors"
	"strings"

	"github.com/aws/smithy-go"
)

// advices are what to do about refusals, by the code of AWS. Services have two families of codes.
var advices = map[string]string{
	"UnrecognizedClientException": adviceKey, "InvalidClientTokenId": adviceKey, "InvalidAccessKeyId": adviceKey,
	"InvalidSignatureException": adviceSecret, "SignatureDoesNotMatch": adviceSecret,
	"ExpiredTokenException": adviceExpired, "ExpiredToken": adviceExpired, "RequestExpired": adviceExpired,
	"AccessDeniedException": adviceDenied, "AccessDenied": adviceDenied, "AuthorizationError": adviceDenied,
}

const (
	adviceKey     = "AWS does not know the access key: look at AWS_PROFILE and AWS_ACCESS_KEY_ID, and at what `aws sts get-caller-identity` says"
	adviceSecret  = "the secret does not belong to the access key, or the clock of this machine is wrong: look at AWS_PROFILE and AWS_SECRET_ACCESS_KEY"
	adviceExpired = "the credentials have expired: get new ones, as with `aws sso login`"
	adviceDenied  = "the credentials are good, and their policy does not allow that operation: deploy/cloudformation has policies that do"
	adviceNone    = "no usable credentials are found: say AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)

// Advice returns what a person can do about an error of AWS that has to do with credentials, or "".
func Advice(err error) string {
	var refused smithy.APIError
	if errors.As(err, &refused) && advices[refused.ErrorCode()] != "" {
		return advices[refused.ErrorCode()]
	}
	if err != nil && strings.Contains(err.Error(), "get credentials: ") { // which the SDK has no type for
		return adviceNone
	}
	return ""
}
