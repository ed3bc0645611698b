package deployments

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/ids"
	"platform/invoker/discovery"
	"platform/metadata"
)

// convert converts a value between JSON and the format of a serializer of a service. The service's
// endpoint does the conversion.
func (s *Server) convert(c echo.Context) error {
	operation := c.Param("operation")
	if operation != "encode" && operation != "decode" {
		return &rest.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("unknown conversion '%s'; there are encode and decode", operation)}
	}
	schemas := s.registry.Schemas()
	service, err := findService(schemas, c)
	if err != nil {
		return err
	}
	id := service.Deployment
	if text := c.QueryParam("deployment"); text != "" {
		if id, err = ids.ParseDeployment(text); err != nil {
			return rest.BadRequest("The query parameter 'deployment' is invalid: %v", err)
		}
	}
	d := schemas.Deployments[id]
	if d == nil {
		return &metadata.NotFoundError{Deployment: id}
	}
	if d.Service(service.Name) == nil { // a client that is limited to services must not reach other endpoints
		return &rest.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("deployment %s has no service %s", d.ID, service.Name)}
	}
	if d.Unreadable != nil {
		return d.Unreadable
	}
	body, release, err := s.cfg.Bodies.ReadBytes(c)
	if err != nil {
		return err
	}
	defer release()
	converted, err := s.discoverer.Convert(c.Request().Context(), discovery.Conversion{
		Deployment: d, Service: service.Name, Encode: operation == "encode", Serde: c.Param("serde"), Body: body,
	})
	if err != nil {
		return err
	}
	switch converted.Status {
	case http.StatusOK:
		// The endpoint chose the content type: a browser must not run scripts of it in this origin.
		c.Response().Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
		c.Response().Header().Set("X-Content-Type-Options", "nosniff")
		return c.Blob(http.StatusOK, converted.ContentType, converted.Body)
	case http.StatusNotFound:
		return &rest.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("deployment %s has no conversion for '%s' of service %s: %s", d.ID, c.Param("serde"), service.Name, reason(converted.Body))}
	}
	return &rest.Error{Status: http.StatusBadGateway, Message: fmt.Sprintf("deployment %s responded to the conversion with status %d: %s", d.ID, converted.Status, reason(converted.Body))}
}

// maxReasonText limits the part of an endpoint's response that an error repeats, in bytes.
const maxReasonText = 500

func reason(body []byte) string {
	return strings.ToValidUTF8(string(body[:min(len(body), maxReasonText)]), "\uFFFD")
}
