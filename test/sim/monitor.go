package sim

import (
	"debug/dwarf"
	"debug/elf"
	"fmt"
)

// member is a field of a structure of the Go runtime.
type member struct{ structure, field string }

// What runtime.go needs to know of the runtime.
var members = []member{{"runtime.schedt", "sysmonlock"}, {"runtime.m", "p"}, {"runtime.p", "schedtick"}}

// offsets finds, in the debugging information of a program, where members lie.
func offsets(program string) ([]int64, error) {
	f, err := elf.Open(program)
	if err != nil {
		return nil, fmt.Errorf("look into the Go runtime: %w", err)
	}
	defer f.Close()
	info, err := f.DWARF()
	if err != nil {
		return nil, fmt.Errorf("look into the Go runtime: %w", err)
	}
	found := map[member]int64{}
	r := info.Reader()
	structure := ""
	for len(found) < len(members) {
		e, err := r.Next()
		switch {
		case err != nil:
			return nil, fmt.Errorf("look into the Go runtime: %w", err)
		case e == nil:
			return nil, fmt.Errorf("this Go runtime has only %v of %v", found, members)
		case e.Tag == dwarf.TagStructType:
			structure, _ = e.Val(dwarf.AttrName).(string)
		case e.Tag == dwarf.TagSubprogram:
			r.SkipChildren()
		case e.Tag == dwarf.TagMember:
			field, _ := e.Val(dwarf.AttrName).(string)
			at, known := e.Val(dwarf.AttrDataMemberLoc).(int64)
			for _, m := range members {
				if known && m == (member{structure, field}) {
					found[m] = at
				}
			}
		}
	}
	out := make([]int64, len(members))
	for i, m := range members {
		out[i] = found[m]
	}
	return out, nil
}
