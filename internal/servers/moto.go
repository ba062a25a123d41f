package servers

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
)

// MotoVariable names the variable with the path of moto_server.
const MotoVariable = "LIMITGATE_MOTO"

// Moto is a running moto_server: an emulator of AWS that keeps all data in memory. Its
// methods may be called from any goroutine.
type Moto struct{ emulator }

// motoBinary returns the path of moto_server.
func motoBinary() (string, error) {
	wanted := "moto_server"
	if path := os.Getenv(MotoVariable); path != "" {
		wanted = path
	}
	path, err := exec.LookPath(wanted)
	if err != nil {
		return "", fmt.Errorf("find moto_server: run make test, or pip install 'moto[server]==5.2.1' and set %s to the file: %w", MotoVariable, err)
	}
	return path, nil
}

// StartMoto starts an emulator with its log in folder. It returns when the emulator
// accepts connections.
func StartMoto(folder string) (*Moto, error) {
	binary, err := motoBinary()
	if err != nil {
		return nil, err
	}
	m := new(Moto)
	err = m.launch(folder, motoPorts, func(number int) (program, []string) { return motoCommand(binary, number) })
	if err != nil {
		return nil, err
	}
	return m, nil
}

func motoCommand(binary string, number int) (what program, args []string) {
	what = program{name: "moto_server", path: binary, ready: "Running on http://" + loopbackAddr(number)}
	return what, []string{"-H", "127.0.0.1", "-p", strconv.Itoa(number)}
}
