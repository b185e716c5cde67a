/**
 * The list of the keys of an account, or of the tokens of the operator API. Revoked and expired credentials are shown
 * on request. The service never returns the secret of a stored credential.
 */
import { Switch } from '@mantine/core';
import type { ReactNode } from 'react';
import { useUrlState } from '../api/url-state';
import { ListHead } from '../parts/list-row';
import { RelativeTime } from '../parts/relative-time';
import { StatusBadge } from '../parts/status-badge';

/** The members common to keys and tokens. */
export interface Credential {
  readonly id: string | number;
  readonly name: string;
  readonly prefix: string;
  readonly state: 'active' | 'expired' | 'revoked';
  readonly created: string;
  readonly expires: string | null;
  readonly lastUsed: string | null;
  /** What the credential permits. Absent for keys, because all keys permit the same operation. */
  readonly access?: string;
}

interface CredentialListProps<Row extends Credential> {
  /** The plural noun, such as `tokens`. The query parameter that shows all credentials has the same name. */
  readonly noun: 'keys' | 'tokens';
  readonly credentials: readonly Row[];
  /** Shown if no credential is active. */
  readonly emptyState: ReactNode;
  /** The buttons of an active credential. */
  readonly renderActions: (credential: Row) => ReactNode;
}

export function CredentialList<Row extends Credential>({
  noun,
  credentials,
  emptyState,
  renderActions,
}: CredentialListProps<Row>) {
  const [urlState, setUrlState] = useUrlState();
  const showsAll = urlState.get(noun) === 'all';
  const activeCredentials = credentials.filter(({ state }) => state === 'active');
  const shownCredentials = showsAll ? credentials : activeCredentials;
  const inactiveCount = credentials.length - activeCredentials.length;
  return (
    <>
      {inactiveCount === 0 ? null : (
        <Switch
          mb="sm"
          label={`Also show expired and revoked ${noun} (${inactiveCount})`}
          checked={showsAll}
          onChange={(event) => setUrlState({ [noun]: event.currentTarget.checked ? 'all' : null }, true)}
        />
      )}
      {shownCredentials.length === 0 ? (
        emptyState
      ) : (
        <div className="card flush">
          <table className="list">
            <caption className="unseen">{noun}</caption>
            <ListHead columns={['Name', 'State', 'Last used', 'Created', 'Expires', '']} />
            <tbody>
              {shownCredentials.map((credential) => (
                <CredentialRow key={credential.id} credential={credential}>
                  {credential.state === 'active' ? renderActions(credential) : null}
                </CredentialRow>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

interface CredentialRowProps {
  readonly credential: Credential;
  readonly children: ReactNode;
}

function CredentialRow({ credential, children }: CredentialRowProps) {
  const { name, prefix, state, created, expires, lastUsed, access } = credential;
  return (
    <tr>
      <td className="fill">
        <div className="two-lines">
          <b>{name}</b>
          <span>
            <code>{prefix}…</code>
            {access === undefined ? null : ` · ${access}`}
          </span>
        </div>
      </td>
      <td>
        <StatusBadge tone={state === 'active' ? 'success' : 'neutral'}>{state}</StatusBadge>
      </td>
      <td className="nowrap" data-label="Last used">
        {lastUsed === null ? <span className="muted">never</span> : <RelativeTime at={lastUsed} />}
      </td>
      <td className="nowrap desk">
        <RelativeTime at={created} />
      </td>
      <td className="nowrap" data-label="Expires">
        {expires === null ? <span className="muted">never</span> : <RelativeTime at={expires} />}
      </td>
      <td className="end actions">{children}</td>
    </tr>
  );
}
