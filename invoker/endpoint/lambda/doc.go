// Package lambda invokes AWS Lambda functions as endpoints: requests and responses are
// encoded as API Gateway proxy events (service protocol, Lambda).
//
// Credentials, endpoints and other settings come from the standard AWS sources: environment
// variables such as AWS_PROFILE and AWS_ENDPOINT_URL, shared files, the instance role. They
// are loaded when the first function is invoked. The region is that of the function.
//
// The package does not retry; the invoker does so by the retry policy of the handler.
package lambda
