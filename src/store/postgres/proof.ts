/**
 * A row that another transaction has committed may be on this server alone: where its wait for the synchronous standby was
 * cancelled, the row is visible all the same. Before an answer rests on such a row, a later commit has to reach the standby;
 * its success proves every earlier commit of the server, whichever process or node made it.
 */
import type { Session, Statement } from './session.ts';

// A transaction that writes nothing waits for nothing, even where it has a number (RecordTransactionCommit of xact.c). This
// writes to the log and to no table, so that no two callers wait for one row.
const PROVE: Statement = { name: 'prove', text: "SELECT pg_logical_emit_message(true, 'postrider', ''::text)" };

/**
 * Makes the commit of the transaction wait for the disk and for the synchronous standby, even where it changes no row. Run
 * alone, it is a transaction of its own. The proof holds for what was read on the same connection.
 */
export async function prove(session: Session): Promise<void> {
  await session.query(PROVE, []);
}
