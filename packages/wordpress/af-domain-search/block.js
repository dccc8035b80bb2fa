/** The block in the editor: a placeholder, and its attributes in the sidebar. PHP renders the search box on the page. */
(function ({ blockEditor, blocks, components, element, i18n }) {
  const { createElement } = element;
  const { __ } = i18n;
  const { PanelBody, Placeholder, SelectControl, TextControl } = components;

  blocks.registerBlockType("af-domain-search/search", {
    edit({ attributes, setAttributes }) {
      const field = (control, name, label, more) =>
        createElement(control, {
          key: name,
          label,
          value: attributes[name],
          onChange: (value) => setAttributes({ [name]: value }),
          ...more,
        });
      const languages = [
        { value: "", label: __("As in the settings", "af-domain-search") },
        { value: "en", label: "English" },
        { value: "fa", label: "دری" },
        { value: "ps", label: "پښتو" },
      ];
      return createElement(
        "div",
        blockEditor.useBlockProps(),
        createElement(
          blockEditor.InspectorControls,
          null,
          createElement(PanelBody, { title: __("Search", "af-domain-search") }, [
            field(SelectControl, "lang", __("Language", "af-domain-search"), { options: languages }),
            field(TextControl, "tlds", __("Endings, such as .af,.com.af", "af-domain-search")),
            field(TextControl, "years", __("Years", "af-domain-search"), { type: "number", min: 1 }),
            field(TextControl, "q", __("Search for this at first", "af-domain-search")),
            field(TextControl, "checkout", __("Address of the checkout", "af-domain-search")),
          ]),
        ),
        createElement(Placeholder, {
          icon: "search",
          label: __(".af domain search", "af-domain-search"),
          instructions: __("The search box appears on the page.", "af-domain-search"),
        }),
      );
    },
    // The page is rendered by PHP.
    save: () => null,
  });
})(window.wp);
