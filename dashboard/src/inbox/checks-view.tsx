/**
 * The findings of the HTML and link checks of a captured message, errors first. Excerpts are untrusted and are shown as
 * text.
 */
import type { CapturedMessage, Check } from '../../../src/operations/inbox.ts';
import { formatCount, formatNumber } from '../parts/number';
import { EmptyState } from '../parts/page-states';
import { StatusBadge } from '../parts/status-badge';
import { TextWithCode } from '../parts/text-with-code';
import { toPrintableText } from '../parts/untrusted-text';

export function ChecksView({ message: { checks, htmlBytes } }: { readonly message: CapturedMessage }) {
  const sizeText = htmlBytes === null ? 'The message has no HTML' : `${formatNumber(htmlBytes)} bytes of HTML`;
  if (checks.length === 0)
    return (
      <EmptyState title="The checks found nothing">
        {sizeText}. The checks cover links, images, placeholders, the plain text and the size. Nothing was fetched.
      </EmptyState>
    );
  return (
    <>
      <p className="inbox-note">{sizeText}. Nothing was fetched for the checks.</p>
      <ul className="inbox-checks" aria-label="Findings">
        {checks.map((check) => (
          <Finding key={check.code} check={check} />
        ))}
      </ul>
    </>
  );
}

function Finding({ check: { level, title, code, reason, remedy, count, places } }: { readonly check: Check }) {
  // Two places may have the same part, line and excerpt, so the key includes the index.
  const rows = places.map((place, index) => ({ ...place, key: `${index} ${place.line}` }));
  return (
    <li>
      <div className="inbox-check-head">
        <StatusBadge tone={level}>{level === 'error' ? 'Error' : 'Warning'}</StatusBadge>
        <b>{title}</b>
        {places.length === 0 ? null : <span className="muted">{formatCount(count, 'place')}</span>}
        <code className="inbox-check-code">{code}</code>
      </div>
      <p>
        <TextWithCode text={reason} /> <TextWithCode text={remedy} />
      </p>
      {places.length === 0 ? null : (
        <ul className="inbox-places">
          {rows.map(({ key, part, line, excerpt }) => (
            <li key={key}>
              <span>
                {line === null ? 'Subject' : `${part === 'html' ? 'HTML' : 'Text'}, line ${formatNumber(line)}`}
              </span>
              <code>{toPrintableText(excerpt)}</code>
            </li>
          ))}
          {count > places.length ? <li className="muted">and {formatNumber(count - places.length)} more</li> : null}
        </ul>
      )}
    </li>
  );
}
