// Package lambda invokes functions of AWS Lambda as endpoints: a request becomes the
// JSON document that API gateways give to functions, and so does a response (service
// protocol, Lambda).
//
// Credentials, endpoints and the like come from where all AWS programs have them:
// environment variables such as AWS_PROFILE and AWS_ENDPOINT_URL, shared files, the
// role of the machine. They are looked for when the first function is invoked. The
// region is that of the function.
//
// Nothing is repeated here, as the invoker does that by the policy of the handler.
package lambda
