package grpcserver

import (
	"golang.org/x/net/http2"
)

// onFrame handles a frame.
func (c *conn) onFrame(f http2.Frame) error {
	switch f := f.(type) {
	case *http2.DataFrame:
		return c.onDataFrame(f)
	case *http2.HeadersFrame:
		c.fields.begin(f.StreamID, f.StreamEnded())
		return c.onFieldsFrame(f)
	case *http2.ContinuationFrame:
		return c.onFieldsFrame(f)
	case *http2.SettingsFrame:
		return c.onSettings(f)
	case *http2.PingFrame:
		if f.IsAck() {
			c.ending.acknowledge(f.Data)
			return nil
		}
		return c.framer.WritePing(true, f.Data)
	case *http2.WindowUpdateFrame:
		return c.onWindowUpdate(f)
	case *http2.RSTStreamFrame:
		if f.StreamID > c.lastID {
			return http2.ConnectionError(http2.ErrCodeProtocol)
		}
		if s := c.streams[f.StreamID]; s != nil {
			c.drop(s)
		}
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	return nil // others, such as PRIORITY, need nothing
}

// fieldsFrame is a frame with header fields.
type fieldsFrame interface {
	HeaderBlockFragment() []byte
	HeadersEnded() bool
}

// onFieldsFrame reads the fields of a frame.
func (c *conn) onFieldsFrame(f fieldsFrame) error {
	if err := c.fields.read(f.HeaderBlockFragment()); err != nil {
		return err
	}
	if !f.HeadersEnded() {
		return nil
	}
	return c.onFields()
}

// onDataFrame takes a part of a message.
func (c *conn) onDataFrame(f *http2.DataFrame) error {
	if f.StreamID > c.lastID {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if err := c.returnWindow(int64(f.Length)); err != nil {
		return err
	}
	s := c.streams[f.StreamID]
	switch {
	case s == nil: // it was answered before it had arrived
		return nil
	case s.ended:
		return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed}
	}
	if padding := f.Length - uint32(len(f.Data())); padding > 0 && !f.StreamEnded() { // the stream's window is for a message alone
		_ = c.framer.WriteWindowUpdate(f.StreamID, padding) // to memory
	}
	c.onData(s, f.Data(), f.StreamEnded())
	return nil
}

// maxSettings bounds the settings of a frame: HTTP/2 and its extensions have some ten.
const maxSettings = 100

// onSettings applies settings of the client, and acknowledges them.
func (c *conn) onSettings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	if f.NumSettings() > maxSettings || f.HasDuplicates() {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	err := f.ForeachSetting(func(setting http2.Setting) error {
		if err := setting.Valid(); err != nil {
			return err
		}
		switch setting.ID {
		case http2.SettingInitialWindowSize:
			return c.setInitialWindow(int64(setting.Val))
		case http2.SettingHeaderTableSize:
			c.encoder.SetMaxDynamicTableSize(min(setting.Val, initialTable))
		}
		return nil
	})
	if err != nil {
		return err
	}
	return c.framer.WriteSettingsAck()
}

// reset ends a stream with an error of HTTP/2.
func (c *conn) reset(id uint32, code http2.ErrCode) {
	_ = c.framer.WriteRSTStream(id, code) // to memory
	if s := c.streams[id]; s != nil {
		c.drop(s)
	}
}
