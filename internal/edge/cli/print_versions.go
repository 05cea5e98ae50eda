package cli

import (
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"usher/internal/domain/doorlist"
)

type listVersions struct {
	Campaign string `required:"" help:"Short name of the campaign."`
	Sitting  string `required:"" help:"Reference of the sitting."`
}

func (l listVersions) Run(s *session) error {
	if err := s.open(); err != nil {
		return err
	}
	versions, err := doorlist.Versions(s.ctx, s.db, s.actor, l.Campaign, l.Sitting)
	if err != nil {
		return err
	}
	if s.line.JSON {
		type version struct {
			Document  doorlist.Document `json:"document"`
			Version   int               `json:"version"`
			PrintedAt time.Time         `json:"printed_at"`
			Zone      string            `json:"zone"`
			PrintedBy string            `json:"printed_by"`
			People    int               `json:"people"`
		}
		list := make([]version, len(versions))
		for i, v := range versions {
			list[i] = version{v.Document, v.Version, v.PrintedAt, v.Zone, v.Actor, v.People}
		}
		return s.answer(list)
	}
	if len(versions) == 0 {
		s.say("doorlist_no_version", map[string]any{"sitting": l.Sitting})
		return nil
	}
	words := map[doorlist.Document]string{doorlist.List: "doorlist_the_list", doorlist.Letters: "doorlist_the_letters"}
	rows := make([]table.Row, len(versions))
	for i, v := range versions {
		rows[i] = table.Row{
			s.voice.Say(words[v.Document], nil), s.number(v.Version),
			s.voice.Instant(v.Stamp()), s.number(v.People), v.Actor,
		}
	}
	s.table([]string{"doorlist_document", "doorlist_version_column", "doorlist_printed_at_column", "doorlist_people_column", "doorlist_printed_by"}, rows, 2, 4)
	return nil
}
