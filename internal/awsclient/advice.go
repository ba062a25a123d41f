package awsclient

import (
	"errors"
	"strings"

	"github.com/aws/smithy-go"
)

// advices are remedies for refusals, by the error code of AWS. Services have two
// families of codes.
var advices = map[string]string{
	"UnrecognizedClientException": adviceKey, "InvalidClientTokenId": adviceKey, "InvalidAccessKeyId": adviceKey,
	"InvalidSignatureException": adviceSecret, "SignatureDoesNotMatch": adviceSecret,
	"ExpiredTokenException": adviceExpired, "ExpiredToken": adviceExpired, "RequestExpired": adviceExpired,
	"AccessDeniedException": adviceDenied, "AccessDenied": adviceDenied, "AuthorizationError": adviceDenied,
}

const (
	adviceKey     = "AWS does not know the access key: check AWS_PROFILE and AWS_ACCESS_KEY_ID, and the output of `aws sts get-caller-identity`"
	adviceSecret  = "the secret does not belong to the access key, or the clock of this machine is wrong: check AWS_PROFILE and AWS_SECRET_ACCESS_KEY"
	adviceExpired = "the credentials have expired: get new ones, as with `aws sso login`"
	adviceDenied  = "the credentials are valid, but their policy does not allow the operation: deploy/cloudformation has policies that do"
	adviceNone    = "no usable credentials: set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
)

// Advice returns a remedy for an error of AWS that concerns credentials, or "".
func Advice(err error) string {
	var refused smithy.APIError
	if errors.As(err, &refused) && advices[refused.ErrorCode()] != "" {
		return advices[refused.ErrorCode()]
	}
	if err != nil && strings.Contains(err.Error(), "get credentials: ") { // the SDK has no type for this error
		return adviceNone
	}
	return ""
}
