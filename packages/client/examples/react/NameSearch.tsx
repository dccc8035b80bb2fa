/** A search box as a React component. The search runs outside of React and passes it every new state. */
import {
  createClient,
  searchAsYouType,
  type Availability,
  type SearchState,
  type TypedSearch,
} from "af-storefront-client";
import { useEffect, useState } from "react";

const client = createClient({ baseUrl: "https://names.example.af" });

function useNameSearch(): readonly [SearchState | null, TypedSearch | null] {
  const [state, setState] = useState<SearchState | null>(null);
  const [search, setSearch] = useState<TypedSearch | null>(null);
  useEffect(() => {
    const started = searchAsYouType(client, { onChange: setState });
    setSearch(started);
    return () => started.stop();
  }, []);
  return [state, search];
}

export function NameSearch({ onAdd }: { readonly onAdd: (name: Availability) => void }) {
  const [text, setText] = useState("");
  const [state, search] = useNameSearch();
  return (
    <form
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        search?.search({ q: text });
      }}
    >
      <label>
        Name{" "}
        <input
          type="search"
          value={text}
          onChange={({ currentTarget }) => {
            setText(currentTarget.value);
            search?.type({ q: currentTarget.value });
          }}
        />
      </label>
      <button>Search</button>
      <p role="status">{state?.problem?.message ?? state?.phase}</p>
      <ul>
        {state?.results.map((name) => (
          <li key={name.domain}>
            {name.unicodeName}: {name.price ? `${name.price.amount} ${name.price.currency}` : name.status}
            {name.price && (
              <button type="button" onClick={() => onAdd(name)}>
                Add to cart
              </button>
            )}
          </li>
        ))}
      </ul>
    </form>
  );
}
