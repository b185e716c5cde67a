/** The addresses of a suppression list, each with its reason and the message that caused the entry. */
import type { SuppressionEntry } from '../../../src/operations/suppressions.ts';
import { ListHead, ListRow } from '../parts/list-row';
import { MessageLink } from '../parts/message-link';
import { RelativeTime } from '../parts/relative-time';
import { REASON_TEXTS, ReasonBadge } from './reason-badge';
import { RemoveSuppressionButton } from './remove-button';

interface SuppressionTableProps {
  readonly list: string;
  readonly entries: readonly SuppressionEntry[];
  /** The address of the row that has the keyboard focus, or null. */
  readonly currentAddress: string | null;
  /** The address whose details the page shows, or null. */
  readonly selectedAddress: string | null;
  readonly onSelect: (address: string) => void;
}

export function SuppressionTable({
  list,
  entries,
  currentAddress: current,
  selectedAddress,
  onSelect,
}: SuppressionTableProps) {
  return (
    <table className="list">
      <caption className="unseen">Suppressed addresses in alphabetical order</caption>
      <ListHead columns={['Reason', 'Address', 'Source', 'Since', '']} />
      <tbody>
        {entries.map(({ address, reason, source, at }) => (
          <ListRow
            key={address}
            id={address}
            isCurrent={address === current}
            isSelected={address === selectedAddress}
            onOpen={() => onSelect(address)}
          >
            <td>
              <ReasonBadge reason={reason} />
            </td>
            <td className="fill">
              <div className="two-lines">
                <button type="button" className="row-button" onClick={() => onSelect(address)}>
                  {address}
                </button>
                <span>{REASON_TEXTS[reason]}</span>
              </div>
            </td>
            <td data-label="Source">
              {source === null ? <span className="muted">operator or import</span> : <MessageLink id={source} />}
            </td>
            <td className="nowrap" data-label="Since">
              <RelativeTime at={at} />
            </td>
            <td className="end actions">
              <RemoveSuppressionButton list={list} address={address} />
            </td>
          </ListRow>
        ))}
      </tbody>
    </table>
  );
}
