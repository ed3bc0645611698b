package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"github.com/labstack/echo/v4"

	"platform/admin/rest"
	"platform/internal/httpserver"
	"platform/internal/ids"
)

// chosenDeployment parses the query parameter that selects a deployment: Keep, Latest, or a
// deployment ID, which can also be given as Id=….
func chosenDeployment(c echo.Context) (DeploymentChoice, error) {
	params := c.QueryParams()
	switch {
	case params.Has("Id") && params.Has("deployment"):
		return DeploymentChoice{}, rest.BadRequest("The query parameters 'Id' and 'deployment' both select a deployment; give one of them")
	case params.Has("Id"):
		return parseDeployment("Id", params.Get("Id"))
	case params.Has("deployment"):
		return parseDeployment("deployment", params.Get("deployment"))
	}
	return DeploymentChoice{}, nil
}

func parseDeployment(parameter, text string) (DeploymentChoice, error) {
	d, err := readDeployment(text)
	if err != nil {
		return d, rest.BadRequest("The query parameter '%s' is invalid: %v", parameter, err)
	}
	return d, nil
}

func readDeployment(text string) (DeploymentChoice, error) {
	switch text {
	case "":
		return DeploymentChoice{}, nil
	case "Keep", "keep":
		return DeploymentChoice{Which: Keep}, nil
	case "Latest", "latest":
		return DeploymentChoice{Which: Latest}, nil
	}
	id, err := ids.ParseDeployment(text)
	if err != nil {
		return DeploymentChoice{}, fmt.Errorf("%q is neither keep nor latest nor a deployment id: %w", text, err)
	}
	return DeploymentChoice{Which: ThisOne, ID: id}, nil
}

// UnmarshalJSON decodes a choice, the field 'deployment' of a body: a string as in the query, or an
// object with the field Id.
func (d *DeploymentChoice) UnmarshalJSON(b []byte) error {
	var text string
	if len(b) > 0 && b[0] == '{' {
		var object struct {
			ID string `json:"Id"`
		}
		if err := json.Unmarshal(b, &object); err != nil {
			return err
		}
		if err := rest.CheckFields(b, reflect.TypeOf(object), "deployment."); err != nil {
			return err
		}
		if name, repeated := httpserver.RepeatedKey(b, true); repeated {
			return rest.InvalidField("deployment", fmt.Errorf("it has the field '%s' twice", name))
		}
		if object.ID == "" {
			return rest.InvalidField("deployment", errors.New("it must be Keep, Latest, the id of a deployment, or an object with the field Id"))
		}
		text = object.ID
	} else if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	choice, err := readDeployment(text)
	if err != nil {
		return rest.InvalidField("deployment", err)
	}
	*d = choice
	return nil
}

// queryIndex parses the index of a journal entry; 0 if none is given.
func queryIndex(c echo.Context, name string) (uint32, error) {
	values, given := c.QueryParams()[name]
	if !given {
		return 0, nil
	}
	text := values[len(values)-1]
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0, rest.BadRequest("The query parameter '%s' is invalid: %q is not the index of a journal entry, a number from 0", name, text)
	}
	return uint32(n), nil
}

// rejectedOperation converts rest.ErrNotFound and *Rejection to a failure; it returns nil for other errors.
func rejectedOperation(id ids.Invocation, err error) *rest.Error {
	if errors.Is(err, rest.ErrNotFound) {
		return &rest.Error{Status: http.StatusNotFound, Message: fmt.Sprintf("The requested invocation '%s' does not exist", id)}
	}
	if rejection, ok := errors.AsType[*Rejection](err); ok {
		return &rest.Error{Status: rejection.Status, Message: rejection.Message}
	}
	return nil
}
