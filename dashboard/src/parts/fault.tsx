/** A page that cannot be drawn says so in its place: the frame around it, and every other page, go on. */
import { Component, type ReactNode } from 'react';
import { PageHead } from './page-head';
import { Failure } from './states';

interface FaultProps {
  /** Another one, such as another page's address, is tried anew. */
  readonly of: string;
  readonly children: ReactNode;
  /** Instead of the page's own words. */
  readonly shown?: (error: unknown) => ReactNode;
}

interface FaultState {
  readonly error: unknown;
  readonly of: string;
}

export class Fault extends Component<FaultProps, FaultState> {
  override state: FaultState = { error: null, of: this.props.of };

  static getDerivedStateFromError(error: unknown): Partial<FaultState> {
    return { error };
  }

  static getDerivedStateFromProps({ of }: FaultProps, state: FaultState): FaultState | null {
    return of === state.of ? null : { error: null, of };
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    if (this.props.shown !== undefined) return this.props.shown(this.state.error);
    return (
      <>
        <PageHead title="This page cannot be shown" />
        <Failure error={this.state.error} retry={() => window.location.reload()} />
      </>
    );
  }
}
