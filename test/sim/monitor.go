package sim

import (
	"debug/dwarf"
	"debug/elf"
	"fmt"
)

// structField is a field of a structure of the Go runtime.
type structField struct{ structure, field string }

// requiredFields are the fields that runtime.go uses.
var requiredFields = []structField{{"runtime.schedt", "sysmonlock"}, {"runtime.m", "p"}, {"runtime.p", "schedtick"}}

// fieldOffsets returns the offsets of requiredFields from the debug information of a program.
func fieldOffsets(program string) ([]int64, error) {
	f, err := elf.Open(program)
	if err != nil {
		return nil, fmt.Errorf("read debug information of the Go runtime: %w", err)
	}
	defer f.Close()
	info, err := f.DWARF()
	if err != nil {
		return nil, fmt.Errorf("read debug information of the Go runtime: %w", err)
	}
	found := map[structField]int64{}
	r := info.Reader()
	structure := ""
	for len(found) < len(requiredFields) {
		e, err := r.Next()
		switch {
		case err != nil:
			return nil, fmt.Errorf("read debug information of the Go runtime: %w", err)
		case e == nil:
			return nil, fmt.Errorf("this Go runtime has only %v of %v", found, requiredFields)
		case e.Tag == dwarf.TagStructType:
			structure, _ = e.Val(dwarf.AttrName).(string)
		case e.Tag == dwarf.TagSubprogram:
			r.SkipChildren()
		case e.Tag == dwarf.TagMember:
			field, _ := e.Val(dwarf.AttrName).(string)
			at, known := e.Val(dwarf.AttrDataMemberLoc).(int64)
			for _, m := range requiredFields {
				if known && m == (structField{structure, field}) {
					found[m] = at
				}
			}
		}
	}
	out := make([]int64, len(requiredFields))
	for i, m := range requiredFields {
		out[i] = found[m]
	}
	return out, nil
}
