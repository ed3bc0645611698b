package logstore

const (
	DeleteBatch = deleteBatch
	ZeroPiece   = zeroPiece
)
