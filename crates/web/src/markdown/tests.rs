//! Pages and their Markdown.

use super::*;
use proptest::prelude::*;

fn base() -> Url {
    Url::parse("https://docs.example/guide/start.html").unwrap()
}

fn from_html(html: &str, base: &Url) -> Content {
    super::from_html(html, base, Duration::from_secs(600))
}

fn text(html: &str) -> String {
    from_html(html, &base()).text
}

#[track_caller]
fn check(html: &str, expected: &str) {
    assert_eq!(text(html), expected, "{html}");
}

#[test]
fn paragraphs_and_headings_are_separated() {
    check(
        "<h1>One</h1><p>a\n  b <p>c<div>d</div><h2> Two </h2>e<br>f<hr>g",
        "# One\n\na b\n\nc\n\nd\n\n## Two\n\ne\nf\n\n---\n\ng",
    );
    check("<h1></h1>x &lt;y&gt; &amp; z&nbsp;&eacute;", "x <y> & z \u{e9}");
    check("", "");
}

#[test]
fn emphasis_marks_touch_their_words() {
    check("a <b> b </b>c", "a **b** c");
    check("<em>x</em><b></b>y<strong><b>z</b></strong>", "*x*y**z**");
    check("run <code>a *b*</code>, <del>no</del>", "run `a *b*`, ~~no~~");
}

#[test]
fn links_are_complete_or_plain_text() {
    check(
        "<a href=../x>x</a> <a href='//b.example/'>y</a> <a href='#z'>z</a> <a href='javascript:alert(1)'>w</a> <a href=/u></a>",
        "[x](https://docs.example/x) [y](https://b.example/) z w",
    );
    check(
        "<base href='https://cdn.example/a/'><a href=b>b</a>",
        "[b](https://cdn.example/a/b)",
    );
    check(
        "<a href=a>a<a href=b>b",
        "[a](https://docs.example/guide/a)[b](https://docs.example/guide/b)",
    );
    check(
        "<img alt='A cat' src=cat.png><img src=x><img alt=dot src='data:image/png;base64,AAAA'>",
        "![A cat](https://docs.example/guide/cat.png)![dot]",
    );
}

#[test]
fn lists_nest() {
    check(
        "<ul><li>a<ol start=9><li>b<p>c</p><li>d</ol><li>e</ul>f",
        "- a\n  9. b\n\n     c\n\n  10. d\n- e\n\nf",
    );
    check(
        "<blockquote><p>a<br>b<blockquote>c</blockquote></blockquote>d",
        "> a\n> b\n\n> > c\n\nd",
    );
}

#[test]
fn code_is_fenced_verbatim() {
    check(
        "<pre><code class=language-rust>\nfn a() {\n    b&lt;c&gt;();\n}\n</code></pre>x",
        "```\nfn a() {\n    b<c>();\n}\n```\n\nx",
    );
    check("<pre>a ``` b</pre>", "````\na ``` b\n````");
    check(
        "<pre><div>a</div><div>b</div>c<br><br>d<b>e</b></pre>",
        "```\na\nb\nc\n\nde\n```",
    );
    check("<ul><li><pre>a\nb</pre></ul>", "- ```\n  a\n  b\n  ```");
}

#[test]
fn tables_with_headers_are_tables_and_others_are_lines() {
    check(
        "<table><thead><tr><th>Name<th>What<tbody><tr><td>a|b<td><p>c</p><p>d</p><tr><td><td>e</table>f",
        "| Name | What |\n| --- | --- |\n| a\\|b | c d |\n|  | e |\n\nf",
    );
    check("<table><tr><td>a<td>b<tr><td>c<td>d</table>", "a | b\nc | d");
    check(
        "<table><tr><td><h2>Page</h2><p>one</p></td></tr></table>",
        "## Page\n\none",
    );
    check(
        "<table><tr><th>a</th></tr><tr><td><table><tr><td>x<td>y</table></table>",
        "| a |\n| --- |\n| x y |",
    );
}

#[test]
fn redteam_hidden_text_is_not_shown_to_a_model() {
    for hidden in [
        "<script>evil()</script>",
        "<style>evil{}</style>",
        "<!-- evil -->",
        "<template>evil</template>",
        "<svg><text>evil</text></svg>",
        "<div hidden>evil<div>evil</div>evil</div>",
        "<span style=visibility:hidden>evil</span>",
        "<iframe>evil</iframe>",
        "<object>evil</object>",
        "<img hidden alt=evil>",
        "\u{e0065}\u{e0076}",
        "\u{202e}\u{200b}",
    ] {
        check(&format!("a {hidden} b"), "a b");
    }
    check("<body style='visibility:hidden'>a", "a");
    check("a<p style='color: red; DISPLAY : none'>evil<p>b", "a\n\nb");
    check("<noscript>shown</noscript>", "shown");
}

#[test]
fn a_title_is_short_and_plain() {
    let page = from_html("<title> A\n &lt;b&gt; \u{202e}</title>x", &base());
    let expected = Content {
        title: Some("A <b>".into()),
        text: "x".into(),
        cut: false,
    };
    assert_eq!(page, expected);
    let long = from_html(&format!("<title>{}</title>", "x".repeat(1000)), &base());
    assert_eq!(long.title.map(|title| title.len()), Some(300));
}

#[test]
fn unmatched_end_tags_close_nothing() {
    check("<div>a</span></p></li>b</div></div></div>c", "ab\nc");
    check("<table><tr><th>a</div></table>b", "| a |\n| --- |\n\nb");
    check("<b>a<p>b</b>c", "**a\n\nb**\n\nc");
}

#[test]
fn i6_depth_size_and_time_are_bounded_for_any_page() {
    let deep = 20_000;
    for (html, what) in [
        ("<div>".repeat(deep), "div"),
        ("<b><i><a href=x>".repeat(deep), "marks"),
        ("<ul><li>x".repeat(deep), "lists"),
        ("<blockquote>x<br>".repeat(deep), "quotes"),
        ("<table><tr><th>x".repeat(deep), "tables"),
        (
            format!("<table><tr><th>{}{}", "x".repeat(deep), "<tr><td>y".repeat(deep)),
            "wide cell",
        ),
        (
            format!("<table><tr>{}{}", "<th>x".repeat(deep), "<tr><td>y".repeat(deep)),
            "many cells",
        ),
        ("<a href=x>y</a>".repeat(deep), "links"),
        (
            format!(
                "<base href=https://a.example/{}/>{}",
                "b".repeat(3000),
                "<a href=x>y</a>".repeat(deep)
            ),
            "long base",
        ),
        ("</p>".repeat(deep), "ends"),
        ("<div hidden>".repeat(deep), "hidden"),
        ("<pre>\n".repeat(deep), "pre"),
        ("<!--".repeat(deep), "comments"),
        ("<a ".repeat(deep), "attributes"),
        ("&".repeat(deep), "entities"),
        ("`".repeat(deep), "ticks"),
    ] {
        let text = text(&html);
        assert!(
            text.len() <= 2 * html.len() + (64 << 10),
            "{what}: {} of {}",
            text.len(),
            html.len()
        );
    }
}

#[test]
fn i6_a_page_that_takes_too_long_is_cut() {
    let attributes: Vec<String> = (0..100_000).map(|number| format!("a{number}")).collect();
    let html = format!("first <x {}>last", attributes.join(" "));
    let page = super::from_html(&html, &base(), Duration::from_millis(20));
    assert_eq!((page.text.as_str(), page.cut), ("first", true));
}

proptest! {
    #[test]
    fn any_tag_soup_is_converted(parts in proptest::collection::vec(prop_oneof![
        Just("<p>"), Just("</p>"), Just("<b>"), Just("</b>"), Just("<li>"), Just("<ul>"), Just("</ul>"), Just("<td>"),
        Just("<tr>"), Just("<th>"), Just("<table>"), Just("</table>"), Just("<pre>"), Just("</pre>"), Just("<a href=x>"),
        Just("</a>"), Just("<div hidden>"), Just("</div>"), Just("<title>"), Just("</title>"), Just("<br>"), Just(" w "),
        Just("<h1>"), Just("</h1>"), Just("<blockquote>"), Just("<script>"), Just("</script>"), Just("&amp;"), Just("<"),
    ], 0..60)) {
        let html = parts.concat();
        let page = from_html(&html, &base());
        prop_assert!(page.text.len() <= 2 * html.len() + (64 << 10));
    }
}
