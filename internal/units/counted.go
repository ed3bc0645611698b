package units

import "fmt"

// Counted returns a number with its noun in the singular, to which an s is added for the plural.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
