// Command readme calls the README's Go snippet.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/redis/go-redis/v9"

	"readme/checkout"
)

func main() {
	client := redis.NewClient(&redis.Options{Addr: os.Args[1] + ":" + os.Args[2]})
	fmt.Println("take")
	fmt.Scanln()
	later, err := checkout.Admit(context.Background(), client, "snippet", "later", "-")
	never, err2 := checkout.Admit(context.Background(), client, "snippet", "never", "-")
	if err != nil || err2 != nil {
		panic(fmt.Sprint(err, err2))
	}
	fmt.Println(later, never)
}
