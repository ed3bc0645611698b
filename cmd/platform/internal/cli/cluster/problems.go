package cluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// groupProblems joins problems of a cluster that differ in the number of the partition only, so that a
// lost node is not reported once for each partition. The order is that of the first of each group.
func groupProblems(problems []string) (lines []string) {
	partitions := make(map[string][]int) // by what is said about them
	for _, problem := range problems {
		if id, rest, ok := partitionProblem(problem); ok {
			partitions[rest] = append(partitions[rest], id)
		}
	}
	for _, problem := range problems {
		_, rest, ok := partitionProblem(problem)
		switch ids := partitions[rest]; {
		case !ok:
			lines = append(lines, problem)
		case ids != nil:
			lines = append(lines, joinedProblem(ids, rest))
			delete(partitions, rest)
		}
	}
	return lines
}

// partitionProblem splits "partition 3 has no leader" into 3 and " has no leader".
func partitionProblem(problem string) (id int, rest string, ok bool) {
	after, found := strings.CutPrefix(problem, "partition ")
	end := strings.IndexAny(after, ": ")
	if !found || end < 1 {
		return 0, "", false
	}
	id, err := strconv.Atoi(after[:end])
	return id, after[end:], err == nil
}

func joinedProblem(ids []int, rest string) string {
	if len(ids) == 1 {
		return fmt.Sprintf("partition %d%s", ids[0], rest)
	}
	numbers := ranges(ids)
	if text, ok := strings.CutPrefix(rest, ": "); ok {
		return fmt.Sprintf("partitions %s: %s", numbers, text)
	}
	for singular, plural := range map[string]string{" has ": " have ", " is ": " are "} {
		if text, ok := strings.CutPrefix(rest, singular); ok {
			return "partitions " + numbers + plural + text
		}
	}
	return fmt.Sprintf("partitions %s:%s", numbers, rest)
}

// ranges formats numbers as "0-3, 5".
func ranges(numbers []int) string {
	numbers = slices.Clone(numbers)
	slices.Sort(numbers)
	var parts []string
	for i := 0; i < len(numbers); {
		last := i
		for last+1 < len(numbers) && numbers[last+1] == numbers[last]+1 {
			last++
		}
		switch last - i {
		case 0, 1: // two numbers are no range
			parts = append(parts, strconv.Itoa(numbers[i]))
			last = i
		default:
			parts = append(parts, fmt.Sprintf("%d-%d", numbers[i], numbers[last]))
		}
		i = last + 1
	}
	return strings.Join(parts, ", ")
}
