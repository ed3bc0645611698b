//go:build simulation

package sim

import (
	"encoding/binary"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"
)

// A bubble of testing/synctest blocks while a goroutine waits for a mutex whose holder waits for
// time to pass, because a goroutine outside the bubble might hold the mutex. Here there are none,
// so such waits count as idle, and time advances as in a server.

//go:linkname waitReasonStrings runtime.waitReasonStrings
var waitReasonStrings [1]string

//go:linkname isIdleInSynctest runtime.isIdleInSynctest
var isIdleInSynctest [1]bool

// mutexReasons are the runtime's descriptions of waiting for a mutex.
var mutexReasons = []string{"sync.Mutex.Lock", "sync.RWMutex.RLock", "sync.RWMutex.Lock"}

// mostReasons bounds the search; the runtime has a few more.
const mostReasons = 40

// idleMutexes must be called before a bubble begins.
func idleMutexes() {
	found := 0
	for i := range mostReasons {
		reason := *(*string)(unsafe.Add(unsafe.Pointer(&waitReasonStrings), i*int(unsafe.Sizeof(""))))
		for _, m := range mutexReasons {
			if reason == m {
				*(*bool)(unsafe.Add(unsafe.Pointer(&isIdleInSynctest), i)) = true
				found++
			}
		}
	}
	if found != len(mutexReasons) {
		panic("this Go runtime has other names for waiting for a mutex: adapt test/sim/runtime.go")
	}
}

//go:linkname globalRand runtime.globalRand
var globalRand [1]byte

//go:linkname chachaInit internal/chacha8rand.(*State).Init
func chachaInit(s unsafe.Pointer, seed [32]byte)

//go:linkname mrandinit runtime.mrandinit
func mrandinit(m unsafe.Pointer)

//go:linkname acquirem runtime.acquirem
func acquirem() unsafe.Pointer

//go:linkname releasem runtime.releasem
func releasem(m unsafe.Pointer)

// stateOffset is the offset of the state in runtime.globalRand: after a mutex of one word and the
// 32 bytes of a seed.
const stateOffset = 8 + 32

// reseedThread makes the runtime's random choices depend on the seed from here on. Each thread of
// the runtime has its own random state, and runs differ in which thread reaches the beginning of a
// bubble; from then on there is only that one, since nothing in a bubble blocks in the kernel.
func reseedThread(seed uint64) {
	var b [32]byte
	binary.LittleEndian.PutUint64(b[:], seed)
	settleTicks()
	m := acquirem()
	defer releasem(m)
	chachaInit(unsafe.Add(unsafe.Pointer(&globalRand), stateOffset), b)
	mrandinit(m)
}

// tickOffsets are the offsets of the processor in runtime.m and of the processor's scheduling
// counter; empty: unknown.
var tickOffsets []uintptr

// settleTicks yields until the scheduling counter is a round number: each 61st goroutine is taken
// from another queue.
func settleTicks() {
	if len(tickOffsets) == 0 {
		return
	}
	for {
		m := acquirem()
		p := *(*unsafe.Pointer)(unsafe.Add(m, tickOffsets[0]))
		tick := *(*uint32)(unsafe.Add(p, tickOffsets[1]))
		releasem(m)
		if tick%61 == 0 {
			return
		}
		runtime.Gosched()
	}
}

//go:linkname sched runtime.sched
var sched [1]byte

// stopMonitor stops the runtime's thread that preempts goroutines that run for more than 10 ms,
// which on a busy machine can be any of them. offset is the offset in runtime.sched of the lock
// that it needs.
func stopMonitor(offset uintptr) {
	lock := (*atomic.Uintptr)(unsafe.Add(unsafe.Pointer(&sched), offset))
	for !lock.CompareAndSwap(0, 1) {
		time.Sleep(time.Millisecond)
	}
}
