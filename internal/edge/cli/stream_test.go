package cli

import (
	"bytes"
	"errors"
	"testing"
)

// A streamed object reads as one that was printed whole.
func TestAnswerObject_ReadsLikeAnAnswer(t *testing.T) {
	t.Parallel()
	type row struct {
		Name string         `json:"name"`
		More map[string]any `json:"more"`
	}
	rows := []row{{"Koné <&> ɲ", map[string]any{"a": []int{1, 2}}}, {"", nil}}
	var whole, streamed bytes.Buffer
	if err := (&session{stdout: &printer{to: &whole}}).answer(map[string]any{"empty": []row{}, "rows": rows, "run": 7}); err != nil {
		t.Fatal(err)
	}
	err := (&session{stdout: &printer{to: &streamed}}).answerObject(func(o *object) error {
		empty, list := o.begin("empty"), o.begin("rows")
		return errors.Join(empty.end(), list.add(rows[0]), list.add(rows[1]), list.end(), o.field("run", 7))
	})
	if err != nil || streamed.String() != whole.String() {
		t.Errorf("%v\n%s\nwant\n%s", err, streamed.String(), whole.String())
	}
}

func TestAnswerObject_SaysWhatBrokeIt(t *testing.T) {
	t.Parallel()
	broken := errors.New("the line is cut")
	err := (&session{stdout: &printer{to: &bytes.Buffer{}}}).answerObject(func(o *object) error {
		list := o.begin("rows")
		return errors.Join(list.add(1), broken)
	})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
